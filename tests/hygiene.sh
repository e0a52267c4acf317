#!/usr/bin/env bash
# Rules that a compiler does not check: hygiene.sh CHECK [FOLDER], where FOLDER is the checkout to look at.
# CHECK is one of those listed at the end. Says what breaks the rule and exits with 1.
set -euo pipefail

check=$1
cd "${2:-$(dirname "${BASH_SOURCE[0]}")/..}"
complaints=0

complain() {
	printf '%s\n' "$*" >&2
	complaints=$((complaints + 1))
}

# The project's own files that match, separated by zeros.
files() { # find(1) expression
	find . \( -path ./build -o -path ./evidence -o -path ./.git \) -prune -o -type f \( "$@" \) -print0
}


# --- layers: includes point down, or sideways within a layer ---

declare -A layers=(
	[base]=0 [rng]=0 [vclock]=0
	[session]=1 [redis]=1 [proc]=1 [reaper]=1 [yaml_file]=1
	[cluster]=2 [redis_server]=2 [history]=2 [proxy]=2 [trace]=2
	[point]=3 [fault]=3 [actor]=3 [oracle]=3
	[evidence]=4 [report]=4
	[scenario]=5 [environment]=5 [progress]=5 [runner]=5 [lab]=5 [crashpoints]=5 [spec]=5 [counters]=5
)

# Sets level: modules of harness/ have their layer, the rooms above it come in the order of the arrows.
find_level() { # file
	local module=${1#harness/}
	module=${module%%[/.]*}
	case $1 in
		harness/*) level=${layers[$module]-} ;;
		systems/*) level=10 ;;
		scenarios/*) level=20 ;;
		cli/*) level=30 ;;
	esac
	if [[ -z $level ]]; then
		complain "$1: module $module has no layer in tests/hygiene.sh"
		level=0
	fi
}

# Sets target to the file that a quoted include means.
find_target() { # including file, header
	for target in "$(dirname "$1")/$2" "harness/$2" systems/*/"$2" "scenarios/$2"; do
		if [[ -f $target ]]; then
			target=$(realpath --relative-to=. "$target")
			return
		fi
	done
	complain "$1 includes $2, which is in no folder it may look into"
	return 1
}

check_layers() {
	local file line target level from
	while IFS=: read -r file line; do
		line=${line#*\"}
		find_target "$file" "${line%\"*}" || continue
		find_level "$file"
		from=$level
		find_level "$target"
		if ((level > from)); then
			complain "$file includes $target: the arrow points up"
		fi
		case $file:$target in
			systems/*:harness/base.h | systems/*:harness/point.h | systems/*:harness/session.h | systems/*:harness/redis.h) ;;
			systems/*:"$(dirname "$file")"/*) ;;
			systems/*) complain "$file includes $target: a system knows session, redis, point, base and its own headers" ;;
			harness/oracle*:harness/base.h | harness/oracle*:harness/history.h | harness/oracle*:harness/oracle*) ;;
			harness/oracle*) complain "$file includes $target: the judge knows the history alone" ;;
		esac
		case $file:$target in
			"${target%/*}"/*:harness/*/* | "${target%/*}".c:harness/*/*) ;;
			harness/runner/*:harness/scenario/*) ;; # the host of what an author of a case sees
			*:harness/*/*) complain "$file includes $target: the inside of another module" ;;
		esac
	done < <(grep -rE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include "' harness systems scenarios cli)
	while IFS=: read -r file _; do
		[[ $file == harness/session* ]] || complain "$file includes libpq-fe.h: session is the only user of libpq"
	done < <(grep -r --include='*.[ch]' 'include.*libpq-fe\.h' harness systems scenarios cli tests)
	while IFS=: read -r file _; do
		[[ $file == harness/redis.c ]] || complain "$file includes hiredis: redis is the only user of it"
	done < <(grep -r --include='*.[ch]' 'include.*hiredis/' harness systems scenarios cli tests)
}


# --- registry: a case is a file, a number, and one line of scenarios/registry.h; all three agree ---

check_registry() {
	local file symbol id path registered defined=' '
	registered=$(sed -n 's/^[[:space:]]*SCENARIO(\(scenario_\)\{0,1\}\([a-z0-9_]*\)).*/\2/p' scenarios/registry.h)
	while IFS=: read -r file symbol; do
		symbol=${symbol#*Scenario scenario_}
		symbol=${symbol%% *}
		if [[ $defined == *" $symbol "* ]]; then
			complain "$file: the number of scenario_$symbol is used twice"
		fi
		defined+="$symbol "
		id=$(sed -n 's/^[[:space:]]*\.id = "\(.*\)",$/\1/p' "$file" | tr 'A-Z/-' 'a-z__')
		if [[ $id != "$symbol" ]]; then
			complain "$file: .id and scenario_$symbol differ"
		fi
		path=${file#scenarios/}
		path=${path%.c}
		if [[ ${path//\//_}_ != "${symbol}_"* ]]; then
			complain "$file: the file's name and scenario_$symbol differ"
		fi
		if [[ $(grep -cx "$symbol" <<<"$registered") != 1 ]]; then
			complain "$file: scenario_$symbol is not on exactly one line of scenarios/registry.h"
		fi
	done < <(grep -r --include='*.c' '^const Scenario scenario_' scenarios)
	for symbol in $registered; do
		if [[ $defined != *" $symbol "* ]]; then
			complain "scenarios/registry.h: no file defines scenario_$symbol"
		fi
	done
}


# --- words that must not be there ---

# Complain about every line that matches, in the files that match.
refuse() { # reason, extended regular expression, find(1) expression
	local line
	while read -r line; do
		complain "$line  <- $1"
	done < <(files "${@:3}" | xargs -0 -r grep -HnE "$2")
}

check_words() {
	refuse 'only wait_until() and backoff_us() sleep' '\b(u|nano|clock_nano)?sleep\(' \
		-name '*.[ch]' ! -path ./harness/base.c
	refuse 'a pause stands for an event' '^([^#]*[[:space:];])?sleep [0-9.$"]' -name '*.sh' -o -path ./.ci/run
	refuse 'a short pause stands for an event' '\bsleep [0-9]*\.[0-9]' -name '*.c' -o -name '*.yaml'
	refuse 'knows no bound, or goes through a shell' '\b(strcpy|strcat|v?sprintf|gets|system|popen)\(' \
		-name '*.[ch]' ! -path './tests/*'
	refuse 'is not finished' '\b(T[O]DO|F[I]XME|X[X]X)\b' \
		-name '*.[ch]' -o -name '*.sh' -o -name '*.sql' -o -name '*.md' -o -name '*.js' -o -name CMakeLists.txt
	refuse 'a lock file names no registry' 'https?://|"resolved"' -name package-lock.json
}


# --- tools ---

check_format() {
	files -name '*.[ch]' | xargs -0 -r clang-format-14 --dry-run -Werror || complain 'clang-format-14 -i mends these'
}

# What Check's macros expand to is not cppcheck's business.
check_cppcheck() {
	files -name '*.[ch]' | xargs -0 -r cppcheck --quiet -j "$(getconf _NPROCESSORS_ONLN)" --std=c11 --inline-suppr \
		--enable=warning,performance,portability --error-exitcode=1 -D_GNU_SOURCE \
		'-DSTART_TEST(name)=static void name(int _i)' -DEND_TEST= -I harness || complain 'cppcheck is not content'
}

check_shellcheck() {
	files -name '*.sh' -o -path ./.ci/run | xargs -0 -r shellcheck || complain 'shellcheck is not content'
}

case $check in
	layers) check_layers ;;
	registry) check_registry ;;
	words) check_words ;;
	format) check_format ;;
	cppcheck) check_cppcheck ;;
	shellcheck) check_shellcheck ;;
	*) complain "no check named $check" ;;
esac
exit $((complaints > 0))
