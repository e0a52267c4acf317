#!/usr/bin/env bash
# The compatible mode of the scenario language against what PostgreSQL 16.14's isolationtester printed for the specs of
# isolation/specs: one by one, and all side by side on two databases. Run it by with-server.
# How the expected files were made: EXPECTED=isolation/expected isolation_compare.sh isolation/specs
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/isolation_lib.sh
source "$here/isolation_lib.sh"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
specs=("$here"/isolation/specs/*.spec)
make_database
for spec in "${specs[@]}"; do
	name=$(basename "$spec" .spec)
	run_spec "$spec" "$counterproof" isolationtester >"$scratch/$name.out"
	judge "$name" "$here/isolation/expected/$name.out" "$scratch/$name.out"
done

# Side by side: the order of the files, a header for each. Those whose limit is two seconds were enough once.
specs=()
for spec in "$here"/isolation/specs/[!t]*.spec; do
	name=$(basename "$spec" .spec)
	specs+=("$spec")
	printf '== %s (exit %s)\n' "$spec" "$(sed -n '$s/.*exit //p' "$here/isolation/expected/$name.out")"
	sed '$s/exit [0-9]*$//' "$here/isolation/expected/$name.out" | head -c -1
done >"$scratch/expected"
make_database
PG_TEST_TIMEOUT_DEFAULT=60 "$counterproof" isolationtester --jobs 2 "$conninfo" "${specs[@]}" >"$scratch/said" ||
	(($? == 1))
judge '--jobs 2' "$scratch/expected" "$scratch/said"

printf '%s specs, %s differ\n' "$(find "$here/isolation/specs" -name '*.spec' | wc -l)" "$different"
exit $((different > 0))
