#!/usr/bin/env bash
# run.sh on a small checkout of its own, in a path with spaces, with server binaries and apt-get that are only scripts:
# what it hands over, when it builds, what it refuses. So is npm: fetching the pinned binaries, which needs a network, is not
# covered.
set -euo pipefail

source_tree=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/..
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree="$scratch/a checkout"
failures=0
unset PG_BIN "${!COUNTERPROOF_@}"
export COUNTERPROOF_CACHE="$scratch/cache" PATH="$scratch/bin:$PATH"

lay_out() {
	mkdir -p "$tree"/{harness,systems/like,scenarios,cli,bench} "$scratch"/{bin,pg16,pg15}
	cp -r "$source_tree"/{run.sh,deps,CMakeLists.txt,CMakePresets.json} "$tree"
	mkdir "$tree/harness/report"
	cp -r "$source_tree"/harness/report/page* "$tree/harness/report"
	cp "$source_tree/scenarios/tales.awk" "$tree/scenarios"
	echo 'extern int harness_part; int harness_part;' >"$tree/harness/part.c"
	echo 'extern int like_part; int like_part;' >"$tree/systems/like/part.c"
	echo 'extern int scenario_part; int scenario_part;' >"$tree/scenarios/part.c"
	printf '#include <stddef.h>\ntypedef struct { const char *told[4]; } ScenarioTale;\n' >"$tree/scenarios/registry.h"
	echo 'extern int command_part; int command_part;' >"$tree/cli/part.c"
	echo 'int main(void) { return 0; }' | tee "$tree/systems/like/like_consumer_main.c" >"$tree/bench/bench.c"
	cat >"$tree/cli/main.c" <<-'C'
		#include <stdio.h>
		#include <stdlib.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			const char *pg_bin = getenv("COUNTERPROOF_PG_BIN");
			printf("pid=%d home=%s pg=%s", (int) getpid(), getenv("COUNTERPROOF_HOME"), pg_bin == NULL ? "" : pg_bin);
			for (int i = 1; i < argc; i++)
				printf(" [%s]", argv[i]);
			return 4;
		}
	C
	for major in 15 16; do
		printf '#!/bin/sh\necho "postgres (PostgreSQL) %s.3"\n' "$major" >"$scratch/pg$major/postgres"
		cp "$scratch/pg$major/postgres" "$scratch/pg$major/initdb"
		cp "$scratch/pg$major/postgres" "$scratch/pg$major/pg_ctl"
	done
	printf '#!/bin/sh\nexit 100\n' >"$scratch/bin/apt-get"
	cat >"$scratch/bin/npm" <<-'SH'
		#!/bin/sh
		[ ! -e "$0.fails" ] || exit 1
		mkdir -p node_modules/uplot/dist
		cd node_modules/uplot && touch LICENSE dist/uPlot.iife.min.js dist/uPlot.min.css
	SH
	chmod +x "$scratch"/{bin,pg15,pg16}/*
}

# Runs run.sh from elsewhere. The pattern is for stdout and stderr together; CHILD in it is the pid that was started.
expect() { # what, exit code, pattern, argument...
	local what=$1 wanted=$2 pattern=$3 code=0
	(cd / && exec "$tree/run.sh" "${@:4}") >"$scratch/output" 2>&1 &
	child=$!
	wait "$child" || code=$?
	output=$(<"$scratch/output")
	pattern=${pattern/CHILD/$child}
	# shellcheck disable=SC2053 # the right side is a pattern
	if [[ $code != "$wanted" || $output != $pattern ]]; then
		printf '%s: exit %s, wanted %s and %s\n%s\n\n' "$what" "$code" "$wanted" "$pattern" "$output" >&2
		failures=$((failures + 1))
	fi
}

lay_out
export PG_BIN="$scratch/pg15"
expect 'a PG_BIN of another version' 3 "run.sh: PG_BIN=$PG_BIN is no folder of PostgreSQL 16*" 32
PG_BIN="$scratch/nowhere"
expect 'a PG_BIN that is not there' 3 "run.sh: PG_BIN=$PG_BIN is no folder of PostgreSQL 16*" 32
PG_BIN="$scratch/pg16"
touch "$scratch/bin/npm.fails"
expect 'what the page needs cannot be fetched' 3 'run.sh: installing page *run.sh: cannot fetch what deps/page/package.json names*' 32
rm "$scratch/bin/npm.fails"
expect 'the first call fetches and builds' 4 "run.sh: installing page *run.sh: building*pid=* home=$tree pg=$PG_BIN \[32-K\] \[b c\]" 32-K 'b c'
expect 'the second does not, and becomes the lab' 4 'pid=CHILD *' 32
expect 'nothing is needed for list' 4 "pid=* pg= \[list\]" list
expect 'nor for counters of a database that is there' 4 "pid=* pg= \[counters\] \[check\] \[-c\] \[f\]" counters check -c f
expect 'nor for a server that is given' 4 "pid=* pg= \[32\] \[--server=x\]" 32 --server=x
expect 'nor for a suite that starts none' 4 "pid=* pg= \[clocks\] \[-v\]" clocks -v
expect 'but for another beside it' 4 "pid=* pg=$PG_BIN \[clocks\] \[32\]" clocks 32
expect 'a version by name' 3 'run.sh: PG_BIN=* is no folder of PostgreSQL 15*' 32 --pg 15
PG_BIN="$scratch/pg15"
expect 'a version by name, found' 4 "pid=* pg=$PG_BIN \[--pg=15\]" --pg=15
expect 'a version that is none is for the lab to refuse' 4 'pid=* pg= \[--pg\] \[x/y\]' --pg x/y
unset PG_BIN
expect 'a version that is nowhere' 3 'run.sh: no PostgreSQL 11 on this machine*' 32 --pg 11
export PG_BIN="$scratch/pg16"
sed -i 's/pid=/PID=/' "$tree/cli/main.c"
expect 'a changed source is built' 4 'PID=*' 32
cp "$tree/deps/packages.txt" "$scratch/packages.txt"
echo 'cmd:no-such-program  client  no-deb  no-rpm  no-brew  for this test' >>"$tree/deps/packages.txt"
expect 'what one case needs is asked for' 4 '*apt-get install*no-deb*run.sh: going on*PID=*' 33 isolation
expect 'and only once' 4 'PID=*' isolation/psql
expect 'and by nobody else' 4 'PID=*' 32
echo 'cmd:no-such-server  redis  no-redis  no-rpm  no-brew  for this test' >>"$tree/deps/packages.txt"
expect 'and what another one does' 4 '*apt-get install*no-redis*run.sh: going on*PID=*' 32 scale/relay
expect 'but not by the rest of its suite' 4 'PID=*' scale/sequencer
mv "$scratch/packages.txt" "$tree/deps/packages.txt"
rm -r "$COUNTERPROOF_CACHE"
expect 'an emptied cache is filled again' 4 'run.sh: installing page *PID=*' 32
expect 'and nothing is fetched twice' 4 'PID=*' 32
expect 'nor is a server looked for to make a page' 4 'PID=* pg= \[report\]' report
mv "$tree" "$scratch/moved away"
tree="$scratch/moved away"
expect 'a moved checkout is built again' 4 "run.sh: building*home=$tree *" 32
echo 'int f(' >>"$tree/cli/main.c"
expect 'a source that does not compile' 3 '*error*the build failed*' 32
echo 'cmd:no-such-program  build  no-deb,nor-this  no-rpm  no-brew  for this test' >>"$tree/deps/packages.txt"
expect 'a package that cannot be had' 3 '*apt-get install*no-deb nor-this*dnf install*no-rpm*brew install no-brew*' 32

exit $((failures > 0))
