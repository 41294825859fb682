# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by scripts that download Debian's packages and install nothing.
#
# apt uses private lists in $APT, which apt_update() sets, and takes the archives' addresses from
# the system's configuration.  The caller defines die() and say(), and may remove $APT after the
# last download.  Packages are those of $ARCH, by default this machine's.

KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
ARCH=${ARCH:-$(dpkg --print-architecture)}

# private COMMAND...: runs apt-get and the like on the private lists.  The dpkg status is empty, so
# packages installed on this machine do not count.
private() {
	"$@" -q -o APT::Architecture="$ARCH" -o APT::Architectures="$ARCH" \
		-o Dir::Etc::SourceList="$APT/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
		-o Dir::State="$APT/state" -o Dir::State::Status="$APT/status" \
		-o Dir::Cache="$APT/cache" -o APT::Sandbox::User=root -o Acquire::Retries=3 \
		-o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
		-o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false
}

# Prints "ADDRESS SUITE" for each of the machine's sources with Debian's main.  The input is apt's
# list of files to fetch, so both formats of sources are understood.
archives() (
	failed=0
	empty=$(mktemp -d)
	trap 'rm -rf "$empty"' EXIT
	mkdir "$empty/partial"
	apt-get update --print-uris -o Dir::State::Lists="$empty" -o Dir::Cache="$empty" |
		sed -n "s|^'\(.*\)/dists/\([^ ]*\)/main/binary-$(dpkg --print-architecture)/.*|\1 \2|p" || failed=1
	exit $failed
)

# Filters the output of archives(): prints the address of Debian's main archive.
main_archive() {
	awk '$2 ~ /^(bookworm|trixie|forky|sid|(old)?stable|testing|unstable)$/ && !n++ { print $1 }'
}

# source_line ADDRESS SUITE COMPONENT.  The keyring of bookworm suffices for trixie, which is signed
# with bookworm's key as well.  On a machine without Debian's keyring, apt's own trusted keys apply.
source_line() {
	local signed=

	[ ! -e $KEYRING ] || signed="[signed-by=$KEYRING] "
	echo "deb $signed$*"
}

# apt_update DIR LINE...: sets APT=DIR and takes LINEs as the sources.
apt_update() {
	APT=$1
	shift
	mkdir -p "$APT/state/lists/partial" "$APT/cache/archives/partial"
	: > "$APT/status"
	printf '%s\n' "$@" > "$APT/sources.list"
	private apt-get update -o APT::Update::Error-Mode=any >&2 ||
		die "the package lists cannot be downloaded, see apt's message above"
}

# unpack DIR PACKAGE...: downloads the packages and unpacks them in DIR.
unpack() {
	local into=$1 debs=$APT/debs deb

	shift
	rm -rf "$debs"
	mkdir -p "$debs"
	(cd "$debs" && private apt-get download "$@") >&2 ||
		die "$* cannot be downloaded, see apt's message above"
	for deb in "$debs"/*.deb; do
		dpkg-deb -x "$deb" "$into"
	done
	rm -rf "$debs"
}
