# shellcheck shell=bash
# For isolation.sh and isolation_compare.sh, which source it: running specs, each in an empty database of its own.

counterproof=${COUNTERPROOF_PROGRAMS:?}/counterproof
: "${COUNTERPROOF_TEST_CONNINFO:?a server, as with-server gives one}"
conninfo=${COUNTERPROOF_TEST_CONNINFO/dbname=\'postgres\'/dbname=\'isolation_regression\'}

# What the server says must not depend on the machine. Files named timeout_* are about the limit of two seconds.
export PGOPTIONS='-c datestyle=Postgres,MDY -c intervalstyle=postgres_verbose -c timezone=PST8PDT' PGAPPNAME=isolation
unset PG_TEST_TIMEOUT_DEFAULT PGISOLATIONTIMEOUT

sql() { # statement
	local said
	said=$(printf 'session lab\nstep run {%s}\n' "$1" |
		"$counterproof" isolationtester "$COUNTERPROOF_TEST_CONNINFO" 2>&1) || true
	if [[ $said != *"step run: $1" ]]; then
		printf '%s\n' "$said" >&2
		return 3
	fi
}

# The specs of one program after another share a database, as those of PostgreSQL's suite do.
make_database() {
	sql 'DROP DATABASE IF EXISTS isolation_regression (FORCE)'
	sql 'CREATE DATABASE isolation_regression'
}

# Print what COMMAND, given a conninfo, says of the spec on stdout and stderr together, and how it ends.
run_spec() { # spec, command...
	local spec=$1 code=0 limit=60
	[[ $spec != */timeout_* ]] || limit=1
	PG_TEST_TIMEOUT_DEFAULT=$limit "${@:2}" "$conninfo" <"$spec" 2>&1 || code=$?
	printf 'exit %s\n' "$code"
}

# Count and show what differs.
different=0
judge() { # name, expected file, file
	if ! cmp -s "$2" "$3"; then
		printf '%s differs\n' "$1" >&2
		diff "$2" "$3" | head -n "${LINES_SHOWN:-20}" >&2 || true
		different=$((different + 1))
	fi
}
