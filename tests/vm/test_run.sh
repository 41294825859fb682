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

# guest FILE COMMAND...: runs COMMAND, and keeps the output in FILE and the status in FILE.status.
guest() {
	local file=$1 status=0
	shift

	"$@" > "$file" 2>&1 < /dev/null || status=$?
	echo $status > "$file.status"
}

# check NAME FILE STATUS PATTERN: the command of FILE exited with STATUS, and the output matches
# PATTERN unless PATTERN is empty.
check() {
	local name=$1 file=$2 want=$3 pattern=$4 result=ok got

	got=$(cat "$file.status")
	if [ "$got" != "$want" ] || { [ -n "$pattern" ] && ! grep -qE -- "$pattern" "$file"; }; then
		result='not ok'
		FAILED=1
		sed 's/^/# /' "$file"
		echo "# exit status $got, expected $want, and expected to see: $pattern"
	fi
	echo "$result $((++COUNT)) - $name"
}

# Modules of the kernel without dependencies, as files for insmod.
KERNEL=$("$(dirname "$RUN")/kernel" 6.12) || exit 1
for module in dummy ifb; do
	xz -dc "$KERNEL"/lib/modules/*/kernel/drivers/net/$module.ko.xz > $module.ko || exit 1
done

# Part of the guest's shell: sets $device to the directory of the PCI device with the number.
PCI='pci() { device=$(dirname $(grep -lx $1 /sys/bus/pci/devices/*/device)); }'

# qemu NAME: prints a directory with a QEMU whose first guest does what stdin says, in bash.
qemu() {
	mkdir "$WORK/$1"
	{
		echo '#!/bin/bash'
		echo 'if mkdir "$0.first" 2> /dev/null; then'
		cat
		echo 'fi'
		echo 'exec /usr/bin/qemu-system-x86_64 "$@"'
	} > "$WORK/$1/qemu-system-x86_64"
	chmod +x "$WORK/$1/qemu-system-x86_64"
	echo "$WORK/$1"
}

dying_qemu() {
	qemu dying <<-'END'
		for argument; do
			case $argument in file:*) echo 'Oops: int3: 0000' > "${argument#file:}" ;; esac
		done
		exit 0
	END
}

hanging_qemu() {
	qemu hanging <<-'END'
		exec sleep 1000  # time: never ends by itself
	END
}

# A guest boots in seconds, so a guest answers all questions that need the same options.
# shellcheck disable=SC2016 # for the guest's shell
everything() {
	guest everything env CLIMPORT_TEST='a  b' "$RUN" --append a=b --append c --bar 16 --edu \
		--modules 'vivid n_devs=2 node_types=0x1,0x1; vgem' \
		--modules "$WORK/dummy.ko numdummies=2;./ifb.ko numifbs=2" sh -c "$PCI"'
			printf "arguments:"
			printf "<%s>" "$@"
			echo
			echo to stderr >&2
			echo "environment: $CLIMPORT_TEST"
			echo "kernel: $(cat /proc/cmdline)"
			ls -1 /sys/class/video4linux /sys/class/net
			pci 0x1110 && stat -c "BAR: %s" $device/resource2
			pci 0x11e8 && echo "vendor: $(cat $device/vendor)"
			echo new > new && touch "/etc/$1" && echo "written"
			exit 7' sh $$ 'a b' "\$x'" '' '*'
}

# shellcheck disable=SC2016 # for the guest's shell
on_6_1() {
	guest on_6_1 env PATH="$(dying_qemu):$PATH" "$RUN" --kernel 6.1 --bar 1 --edu --iommu \
		sh -c "$PCI"'
			echo "$(id -u) $(uname -r)"
			pci 0x11e8 && echo "IOMMU: $(cat $device/iommu_group/type)"'
}

# The guest that hangs is there all the time, and needs no processor.
# time: never ends by itself
guest hang "$RUN" --timeout 60 sleep 1000 &
guest again env PATH="$(hanging_qemu):$PATH" "$RUN" --timeout 180 echo booted &
guest gdb "$RUN" --gdb "$WORK/gdb" --timeout 5 true &
everything &
EVERYTHING=$!
on_6_1
wait $EVERYTHING
guest missing "$RUN" --modules climport_none true
guest missing_path "$RUN" --modules "$WORK/none.ko" true
guest crash "$RUN" sh -c 'echo c > /proc/sysrq-trigger'
guest warning "$RUN" sh -c 'echo "WARNING: CPU: 1 PID: 1 at test" > /dev/kmsg'
guest stopped "$RUN" busybox reboot -f
guest bad_bar "$RUN" --bar 3 true
guest bad_kernel "$RUN" --kernel 5.0 true
guest kept cat new
guest etc test -e "/etc/$$"
wait

check "the command's exit status is passed through" everything 7 ''
check 'a guest that hangs while it boots is booted again' again 0 '^booted'
check 'the hang is reported' again 0 'hung while it booted, attempt 1'
check 'arguments arrive unchanged' everything 7 "^arguments:<$$><a b><\\\$x'><><\*>$"
check 'both kinds of output come out' everything 7 'to stderr'
check 'the environment of the layer is passed through' everything 7 '^environment: a  b$'
check 'the current directory is writable, the root only in memory' everything 7 '^written$'
check 'files written to the current directory remain' kept 0 '^new$'
check 'files written to the root do not remain' etc 1 ''
check 'modules are loaded with their parameters' everything 7 '^video1$'
check 'a path of a module is loaded, with parameters' everything 7 '^dummy1$'
check 'a relative path of a module is relative to the current directory' everything 7 '^ifb1$'
check 'the requested BAR is a PCI resource of the requested size' everything 7 '^BAR: 16777216$'
check 'the requested DMA device is on the PCI bus' everything 7 '^vendor: 0x1234$'
check 'parameters for the kernel arrive' everything 7 '^kernel: .* a=b c$'
check 'the guest runs as root on the requested kernel' on_6_1 0 '^0 6\.1\.0'
check 'the requested IOMMU translates every address' on_6_1 0 '^IOMMU: DMA(-FQ)?$'
check 'a guest whose kernel died during the boot is booted again' on_6_1 0 'died while it booted, attempt 1'
check 'two guests run side by side' on_6_1 0 ''
check 'a missing module is an error' missing 125 'climport_none'
check 'a path of a missing module is an error' missing_path 125 'none\.ko'
check 'an impossible size of a BAR is an error in words' bad_bar 125 'power of two'
check 'an unknown kernel is an error in words' bad_kernel 125 'usage: .*6\.12'
check 'a crash of the kernel is a failure with the log' crash 125 'sysrq: Trigger a crash'
check 'a warning of the kernel is a failure with the log' warning 125 'WARNING: CPU: 1 PID: 1 at test'
check 'a guest that stops without a status is a failure' stopped 125 'without a status'
check 'a guest that hangs is a failure with the log' hang 124 'climport-vm: start'
check 'a guest under --gdb waits for the debugger' gdb 124 ''
echo "1..$COUNT"
exit $FAILED
