# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# Sourced by build-nvidia and refresh-nvidia: NVIDIA's driver as installed for a kernel.
#
# Only the installed file is asked, which will be loaded: sources and builds of other drivers may
# exist as well, and DKMS 3.0 keeps no Module.symvers.  The caller has die(), and may remove $WORK.

# The driver's functions.  The driver is known by these names, because file names differ.
PREFIX=nvidia_p2p_

# unpacked FILE: the path of FILE without compression, for readelf.
unpacked() {
	local ko=$WORK/${1##*/}

	ko=${ko%.ko*}.ko
	case $1 in
	*.xz) xz -dc "$1" ;;
	*.zst) zstd -qdc "$1" ;;
	*.gz) gzip -dc "$1" ;;
	*) cat "$1" ;;
	esac > "$ko" || die "$1 cannot be unpacked"
	echo "$ko"
}

# The open modules with the driver's functions, "FILE UNPACKED" a line.
drivers() {
	local modules=$1 file ko

	find -L "$modules" -name 'nvidia*.ko*' ! -path "$modules/build/*" ! -path "$modules/source/*" |
		sort | while read -r file; do
		ko=$(unpacked "$file")
		if ! readelf -sW "$ko" | grep "__ksymtab_$PREFIX" > /dev/null ||
			[ "$(modinfo -F license "$ko")" != "Dual MIT/GPL" ]; then
			rm "$ko"
			continue
		fi
		echo "$file $ko"
	done
}

# find_driver KERNEL_RELEASE: sets DRIVER, a path without compression, and DRIVER_VERSION.
find_driver() {
	local all

	all=$(drivers "/lib/modules/$1")
	[ -n "$all" ] || die "no open driver of NVIDIA's is installed for $1. If there is one for" \
		"other kernels, install it for this one first"
	# Of several modules, modprobe takes the file of the name nvidia.ko.
	[ "$(wc -l <<<"$all")" = 1 ] || all=$(grep '/nvidia\.ko[^/]* ' <<<"$all") ||
		die "several drivers of NVIDIA's are installed for $1: remove all but one"
	[ "$(wc -l <<<"$all")" = 1 ] || die "nvidia.ko is installed twice for $1: remove one"
	DRIVER=${all#* }
	# shellcheck disable=SC2034 # build-nvidia's
	DRIVER_VERSION=$(modinfo -F version "$DRIVER")
}

# section_offset KO INDEX: the offset of the section in the file.
section_offset() {
	readelf -SW "$1" | sed -n "s/^ *\[ *$2\] *[^ ]* *[^ ]* *[0-9a-f]* *\([0-9a-f]*\) .*/\1/p"
}

# word KO SECTION OFFSET: four bytes, little-endian, in hexadecimal.
word() {
	local at=$((0x$(section_offset "$1" "$2") + 0x$3))

	od -An -v -t x4 --endian=little -j "$at" -N 4 "$1" | tr -d ' '
}

# The versions of the driver's functions, "VERSION NAME" a line.  VERSION is 00000000 if the kernel
# has no symbol versions.  A version is a symbol's value, or from Linux 6.0 on a word in a section.
exports() {
	local ko=$1 value section symbol

	readelf -sW "$ko" | awk -v p="__crc_$PREFIX" 'index($8, p) == 1 { print $2, $7, substr($8, 7) }' |
		while read -r value section symbol; do
			case $section in
			ABS) value=${value: -8} ;;
			*) value=$(word "$ko" "$section" "$value") ;;
			esac
			echo "$value $symbol"
		done | sort -k 2 > "$WORK/versions"
	if [ ! -s "$WORK/versions" ]; then
		readelf -sW "$ko" | awk -v p="__ksymtab_$PREFIX" \
			'index($8, p) == 1 { print "00000000", substr($8, 11) }' | sort -u > "$WORK/versions"
	fi
	cat "$WORK/versions"
}
