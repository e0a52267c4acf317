#!/usr/bin/env bash
# mutants.sh PROGRAM [DESIGN]: every twin is caught by the check that it names, and the matrix can also say that one is not.
#
# The second half breaks what the first relies on, in a copy of sql/: a twin that is none, a canary that is caught, a
# system that is wrong, a twin that does not load.
set -euo pipefail

program=$1
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export COUNTERPROOF_EVIDENCE=$work/evidence

fail() {
	printf 'mutants.sh: %s\n' "$*" >&2
	sed 's/^/| /' "$work/output" >&2
	exit 1
}

# Runs it over a copy of sql/ and looks for the exit code and the summary.
expect() { # what, exit code, SUMMARY as a pattern, argument...
	local what=$1 code=$2 summary=$3 got=0
	shift 3
	"$program" mutants --brief "$@" >"$work/output" 2>&1 || got=$?
	((got == code)) || fail "$what: exit $got instead of $code"
	grep -qxE "SUMMARY  $summary" "$work/output" || fail "$what: no line SUMMARY  $summary"
}

fresh_copy() {
	rm -rf "$work/sql"
	cp -R "$home/sql" "$work/sql"
	mutants=$work/sql/like/mutants
}

# With a design: its twins, and no more.
if (($# > 1)); then
	expect "every twin of design $2" 0 'caught=(4[5-9]|[5-9][0-9]|[0-9]{3,}) survived=0 canary=survived' --design "$2"
	exit
fi

expect 'every twin' 0 'caught=(3[89]|[4-9][0-9]|[0-9]{3,}) survived=0 canary=survived'

# What the environment selects is selected once, and not again inside.
COUNTERPROOF_SHARD=2/2 COUNTERPROOF_BRIEF=1 expect 'the second half of two twins' 0 'caught=1 survived=0 canary=survived' M14 M26

# M14 is a twin that no case uses as its negative control, M07 the one of the canary.
fresh_copy
cp "$work/sql/like/consume.sql" "$mutants/M14/consume.sql"
expect 'a twin that is none' 1 'caught=0 survived=1 canary=survived' --sql "$work/sql" M14

fresh_copy
echo 'SELECT no_such_function();' >"$mutants/M14/consume.sql"
expect 'a twin that does not load' 1 'caught=0 survived=1 canary=survived' --sql "$work/sql" M14

fresh_copy
cp "$work/sql/like/designs/sequencer/number.sql" "$work/sql/like/designs/sequencer/mutants/S04/number.sql"
expect 'a twin of a design that is none' 1 'caught=0 survived=1 canary=survived' --sql "$work/sql" S04

fresh_copy
cp "$mutants/M05/write.sql" "$mutants/M07/write.sql"
expect 'a canary that is caught' 1 'caught=1 survived=0 canary=caught' --sql "$work/sql" M14

fresh_copy
cp "$mutants/M14/consume.sql" "$work/sql/like/consume.sql"
expect 'a system that is wrong' 1 'caught=1 survived=0 canary=survived system=red' --sql "$work/sql" M14

echo 'every twin is caught, and what could hide one is seen'
