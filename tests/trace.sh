#!/usr/bin/env bash
# The command `trace check`, and what it says of a suite's own file: trace.sh PROGRAM FOLDER-OF-EVIDENCE.
set -euo pipefail

program=$1
evidence=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Checks exit code and the only line that is said.
expect() { # code, pattern, argument...
	local code=0 said
	said=$("$program" "${@:3}" 2>&1) || code=$?
	# shellcheck disable=SC2053 # a pattern is meant
	if [[ $code != "$1" || $said != $2 || $said == *$'\n'* ]]; then
		printf 'trace.sh: %s: exit %s, not %s, and said: %s\n' "${*:3}" "$code" "$1" "$said" >&2
		exit 1
	fi
}

expect 0 '* events in 12 executions, every clock is right' trace check "$evidence/32/trace.shiviz"
expect 0 '* events in * executions, every clock is right' trace check "$evidence/33/trace.shiviz"

# What a case's file tells at its head is on record, and so on the page.
grep -q '"method":"like-consumer as a process of its own, .*"not_shown":"Power loss (L3)\. ' "$evidence/32/results.json" || {
	echo 'trace.sh: results.json does not tell the method of 32-K' >&2
	exit 1
}

# The same file, damaged: an event is taken out, one is cut short, a clock forgets.
sed '5,6d' "$evidence/32/trace.shiviz" >"$folder/hole"
expect 2 '*hole: line *' trace check "$folder/hole"
head -c 2000 "$evidence/32/trace.shiviz" >"$folder/short"
expect 2 '*short: line *' trace check "$folder/short"
sed '0,/"lab":3/s/"lab":3/"lab":2/' "$evidence/32/trace.shiviz" >"$folder/forgets"
expect 2 '*forgets: line *' trace check "$folder/forgets"
expect 2 '*cannot open*' trace check "$folder/none"
expect 2 'what to do with which file? *' trace
expect 2 '--seed cannot go with trace *' trace check --seed 3 "$folder/short"
