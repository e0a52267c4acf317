#!/usr/bin/env bash
# A run of crash points that is interrupted, killed, or loses a worker: the right exit code, and nothing is left of it,
# neither processes nor folders.
#
#   tests/crashpoints.sh PROGRAM    PROGRAM is the built counterproof; COUNTERPROOF_PG_BIN names the server's binaries
set -uo pipefail

program=$1
work=$(mktemp -d /tmp/cl-XXXXXX)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/leftovers.sh
source "$(dirname "${BASH_SOURCE[0]}")/leftovers.sh"
look_out "$work" 'crash points'

cat >"$work/insert.yaml" <<'END'
setup: CREATE TABLE done (id int PRIMARY KEY)
program: [crash-client, BEGIN, INSERT INTO done VALUES (1) ON CONFLICT DO NOTHING, COMMIT]
concurrent: setsid crash-client "SELECT pg_sleep(0.2)"
invariants: [{name: once, sql: SELECT count(*) FROM done HAVING count(*) <> 1}]
END

# A Redis that outlives the program that started it, in a session of its own.
cat >"$work/redis.yaml" <<'END'
setup: CREATE TABLE done (id int PRIMARY KEY)
program: redis-up redis && crash-client BEGIN "INSERT INTO done VALUES (1) ON CONFLICT DO NOTHING" COMMIT
invariants: [{name: once, sql: SELECT count(*) FROM done HAVING count(*) <> 1}]
END
file=$work/insert.yaml

# Sets pid to a run that was given so long. A shell has what it runs aside ignore SIGINT, a run that has not begun, too.
begin() { # seconds
	env --default-signal=INT "$program" crashpoints "$file" --jobs 2 --color never >"$work/out" 2>"$work/err" </dev/null &
	pid=$!
	for _ in {1..500}; do # until the program is there, and SIGINT is no longer ignored
		[[ $(cat "/proc/$pid/comm" 2>/dev/null) == counterproof ]] && break
		read -rt 0.01 <> <(:) || true
	done
	read -rt "$1" <> <(:) || true
}

strike() { # signal, seconds, exit code
	local code
	begin "$2"
	kill "-$1" "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	code=$?
	# before the run has begun, the signal does what it does to any program; after it has ended, nothing
	if [[ $code != "$3" && $code != 143 && ! ($code == 0 && $2 == 5) ]]; then
		complain "SIG$1 after $2 s: exit $code, not $3: $(cat "$work/err")"
	fi
	expect_quiet "SIG$1 after $2 s" 5
}

for moment in 0.05 0.2 0.5 0.8 1.2 1.7 2.5 5; do
	strike INT "$moment" 130
	strike TERM "$moment" 130
	strike KILL "$moment" 137
done

for moment in 0.3 0.7 1.5 2.5; do
	begin "$moment"
	# the reaper is a child, too, in a session of its own
	worker=$(pgrep -P "$pid" -g "$(pgrep -P "$pid" -x counterproof -n)" || true)
	if [[ -n $worker ]] && kill -KILL "$worker"; then
		wait "$pid"
		code=$?
		if [[ $code != 3 ]] || ! grep -q 'a worker ended by signal 9' "$work/err"; then
			complain "a worker killed after $moment s: exit $code, not 3: $(cat "$work/err")"
		fi
	else
		complain "no worker after $moment s"
		wait "$pid"
	fi
	expect_quiet "a worker killed after $moment s" 5
done

file=$work/redis.yaml
for moment in 0.7 1.2 1.7 2.5; do
	strike INT "$moment" 130
	strike KILL "$moment" 137
done

exit $((failures > 0))
