#!/usr/bin/env bash
# isolation_compare.sh FOLDER [SPEC...]: whether PostgreSQL's own isolationtester, named in ISOLATIONTESTER, says the same
# of every spec in FOLDER as the compatible mode does, to the byte and the exit status. Run it by with-server. What it
# says is left in EXPECTED, a folder, if that is set.
set -euo pipefail
# shellcheck source=tests/isolation_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/isolation_lib.sh"

: "${ISOLATIONTESTER:?the program to compare with}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
specs=("${@:2}")
((${#specs[@]})) || specs=("$1"/*.spec)
run_all() { # folder for what is said, command...
	make_database
	mkdir -p "$1"
	for spec in "${specs[@]}"; do
		run_spec "$spec" "${@:2}" >"$1/$(basename "$spec" .spec).out"
	done
}

run_all "${EXPECTED:-$scratch/theirs}" "$ISOLATIONTESTER"
run_all "$scratch/ours" "$counterproof" isolationtester
for spec in "${specs[@]}"; do
	name=$(basename "$spec" .spec)
	judge "$name" "${EXPECTED:-$scratch/theirs}/$name.out" "$scratch/ours/$name.out"
done
printf '%s specs, %s differ\n' "${#specs[@]}" "$different"
exit $((different > 0))
