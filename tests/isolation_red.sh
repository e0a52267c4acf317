#!/usr/bin/env bash
# isolation_red.sh PROGRAM: each negative control of the suite isolation is red without its guard, each guard's case is red
# when the guard is gone. A file below sql/isolation/ is changed in a copy of sql/; the case must FAIL by the named check.
set -euo pipefail

program=$1
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export COUNTERPROOF_EVIDENCE=$work/evidence
rows=0

fail() {
	printf 'isolation_red.sh: %s\n' "$*" >&2
	sed 's/^/| /' "$work/output" >&2
	exit 1
}

# The case's checks must notice what the edit does to the file.
red() { # case, file below sql/, edit for sed -E, part of the line of a check that must fail
	local case=$1 file=$2 edit=$3 part=$4 got=0
	rm -rf "$work/sql"
	cp -R "$home/sql" "$work/sql"
	sed -E -i "$edit" "$work/sql/$file"
	if cmp -s "$home/sql/$file" "$work/sql/$file"; then
		printf '' >"$work/output"
		fail "$case: '$edit' changes nothing in $file"
	fi
	"$program" "$case" --sql "$work/sql" >"$work/output" 2>&1 || got=$?
	((got == 1)) || fail "$case with '$edit' in $file: exit $got instead of 1"
	grep -F 'FAIL ' "$work/output" | grep -qF "$part" || fail "$case with '$edit' in $file: no FAIL of \"$part\""
	rows=$((rows + 1))
}

stricter='s/REPEATABLE READ/SERIALIZABLE/'
weaker='s/SERIALIZABLE/REPEATABLE READ/'

red isolation/skew isolation/doctors_repeatable_read.spec "$stricter" 'invariant somebody: shortest interleaving'
red isolation/skew isolation/doctors_serializable.spec "$weaker" 'invariant somebody: interleavings in which it holds'

echo "$rows edits, each seen red"
