#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests of tests/vm/run: the guest gets the command's arguments and environment, and every failure
# of a guest is reported with the log.
set -uo pipefail

RUN=$(cd "$(dirname "$0")" && pwd)/run
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$WORK" || exit 1
COUNT=0 FAILED=0

# check NAME STATUS PATTERN COMMAND...: COMMAND exits with STATUS, and the output matches PATTERN
# unless PATTERN is empty.
check() {
	local name=$1 want=$2 pattern=$3 got=0 result=ok
	shift 3

	"$@" > out 2>&1 < /dev/null || got=$?
	if [ "$got" != "$want" ] || { [ -n "$pattern" ] && ! grep -qE -- "$pattern" out; }; then
		result='not ok'
		FAILED=1
		sed 's/^/# /' out
		echo "# exit status $got, expected $want, and expected to see: $pattern"
	fi
	echo "$result $((++COUNT)) - $name"
}

# A module of the kernel without dependencies, as a file for insmod.
KERNEL=$("$(dirname "$RUN")/kernel" 6.12) || exit 1
xz -dc "$KERNEL"/lib/modules/*/kernel/drivers/net/dummy.ko.xz > dummy.ko || exit 1

# pci DEVICE: prints a line for the guest's shell, which sets $device to the PCI device's directory.
pci() { echo "device=\$(dirname \$(grep -lx $1 /sys/bus/pci/devices/*/device))"; }

# Prints a directory with a QEMU whose first guest dies during the boot.
dying_qemu() {
	mkdir "$WORK/dying"
	cat > "$WORK/dying/qemu-system-x86_64" <<-'END'
		#!/bin/bash
		if mkdir "$0.died" 2> /dev/null; then
			for argument; do
				case $argument in file:*) echo 'Oops: int3: 0000' > "${argument#file:}" ;; esac
			done
			exit 0
		fi
		exec /usr/bin/qemu-system-x86_64 "$@"
	END
	chmod +x "$WORK/dying/qemu-system-x86_64"
	echo "$WORK/dying"
}

# shellcheck disable=SC2016 # for the guest's shell
{
check "the command's exit status is passed through" 7 '' \
	"$RUN" sh -c 'exit 7'
check 'arguments arrive unchanged' 0 "^<a b><\\\$x'><><\*>$" \
	"$RUN" printf '<%s>' 'a b' "\$x'" '' '*'
check 'both kinds of output come out' 0 'to stderr' \
	"$RUN" sh -c 'echo to stderr >&2'
CLIMPORT_TEST='a  b' check 'the environment of the layer is passed through' 0 '^a  b$' \
	"$RUN" sh -c 'echo "$CLIMPORT_TEST"'
check 'the guest runs as root on the requested kernel' 0 '^0 6\.1\.0' \
	"$RUN" --kernel 6.1 sh -c 'echo $(id -u) $(uname -r)'
check 'the current directory is writable, the root only in memory' 0 '' \
	"$RUN" sh -c "echo new > new && touch /etc/$$"
check 'files written to the current directory remain' 0 new cat new
check 'files written to the root do not remain' 1 '' test -e "/etc/$$"
check 'modules are loaded with their parameters' 0 '^video1$' \
	"$RUN" --modules 'vivid n_devs=2 node_types=0x1,0x1; vgem' ls -1 /sys/class/video4linux
check 'a missing module is an error' 125 'climport_none' \
	"$RUN" --modules climport_none true
check 'a path of a module is loaded, with parameters' 0 '^dummy1$' \
	"$RUN" --modules "vgem;$WORK/dummy.ko numdummies=2" ls -1 /sys/class/net
check 'a relative path of a module is relative to the current directory' 0 '^dummy1$' \
	"$RUN" --modules './dummy.ko numdummies=2' ls -1 /sys/class/net
check 'a path of a missing module is an error' 125 'none\.ko' \
	"$RUN" --modules "$WORK/none.ko" true
check 'the requested BAR is a PCI resource of the requested size' 0 '^16777216$' \
	"$RUN" --bar 16 sh -c "$(pci 0x1110); stat -c %s \$device/resource2"
check 'an impossible size of a BAR is an error in words' 125 'power of two' \
	"$RUN" --bar 3 true
check 'the requested DMA device is on the PCI bus' 0 '^0x1234$' \
	"$RUN" --edu sh -c "$(pci 0x11e8); cat \$device/vendor"
check 'the requested IOMMU translates every address' 0 '^DMA(-FQ)?$' \
	"$RUN" --bar 1 --edu --iommu sh -c "$(pci 0x11e8); cat \$device/iommu_group/type"
check 'parameters for the kernel arrive' 0 ' a=b c$' \
	"$RUN" --append a=b --append c cat /proc/cmdline
check 'a crash of the kernel is a failure with the log' 125 'sysrq: Trigger a crash' \
	"$RUN" sh -c 'echo c > /proc/sysrq-trigger'
check 'a warning of the kernel is a failure with the log' 125 'WARNING: CPU: 1 PID: 1 at test' \
	"$RUN" sh -c 'echo "WARNING: CPU: 1 PID: 1 at test" > /dev/kmsg'
check 'a guest that stops without a status is a failure' 125 'without a status' \
	"$RUN" busybox reboot -f
check 'a guest that hangs is a failure with the log' 124 'climport-vm: start' \
	"$RUN" --timeout 40 sleep 1000
check 'a guest under --gdb waits for the debugger' 124 '' \
	"$RUN" --gdb "$WORK/gdb" --timeout 5 true
check 'an unknown kernel is an error in words' 125 'usage: .*6\.12' \
	"$RUN" --kernel 5.0 true
check 'a guest whose kernel died during the boot is booted again' 0 'died while it booted, attempt 1' \
	env PATH="$(dying_qemu):$PATH" "$RUN" true
check 'two guests run side by side' 0 '^22$' \
	sh -c '"$0" echo -n 2 & "$0" echo -n 2; wait' "$RUN"
}
echo "1..$COUNT"
exit $FAILED
