#!/usr/bin/env bash
# Bad input and bad luck: each gets one clear line on stderr and the right exit code, and nothing is left running.
#
#   tests/bad_luck.sh PROGRAM    PROGRAM is the built counterproof; COUNTERPROOF_PG_BIN names the server's binaries
set -uo pipefail

program=$1
pg_bin=${COUNTERPROOF_PG_BIN:?names the folder of PostgreSQL 16 binaries}
work=$(mktemp -d /tmp/bl-XXXXXX)
trap 'chmod -R u+rwx "$work"; rm -rf "$work"' EXIT
# shellcheck source=tests/leftovers.sh
source "$(dirname "${BASH_SOURCE[0]}")/leftovers.sh"
look_out "$work" 'bad luck'
mkdir "$work/evidence"
unset COUNTERPROOF_SCALE

expect() { # exit code, words on stderr, argument...
	local want=$1 words=$2 code lines
	shift 2
	timeout 60 "$program" "$@" >"$work/out" 2>"$work/err" </dev/null
	code=$?
	lines=$(wc -l <"$work/err")
	[[ $code == "$want" ]] || complain "$*: exit $code, not $want: $(cat "$work/err")"
	[[ $(<"$work/err") == *"$words"* ]] || complain "$*: does not say '$words': $(cat "$work/err")"
	((lines <= ${most_lines-1})) || complain "$*: $lines lines on stderr: $(cat "$work/err")"
	expect_quiet "$*" 1
}

# --- input ---

expect 5 '32-K' 32-k
expect 5 '32' 34
expect 2 '--repeat' --repet 3 32-A
expect 2 '--seed' 32-A --seed -1
expect 2 '--repeat' 32-A --repeat 0
expect 2 '--jobs' 32-A --jobs many
expect 2 '--shard' 32-A --shard 3/2
expect 2 '' --keep --repeat 2 32-A
COUNTERPROOF_REPEAT=none expect 2 'COUNTERPROOF_REPEAT' 32-A

# --- the server's binaries and folders ---

COUNTERPROOF_PG_BIN='' expect 3 'PostgreSQL 16' 32-A
expect 3 "$work" 32-A --pg-bin "$work"

fake() { # a folder of binaries whose postgres is a script
	mkdir -p "$work/$1"
	ln -sf "$pg_bin"/* "$work/$1/"
	rm "$work/$1/postgres"
	cat >"$work/$1/postgres"
	chmod 755 "$work/$1/postgres"
}

fake wrong <<<$'#!/bin/sh\necho "postgres (PostgreSQL) 15.18"'
expect 3 '15' 32-A --pg-bin "$work/wrong"

fake dying <<END
#!/bin/sh
if [ "\$1" = --version ]; then exec "$pg_bin/postgres" --version; fi
case "\$*" in *--boot*|*--single*|*-C*) exec "$pg_bin/postgres" "\$@" ;; esac
echo "FATAL:  no luck today" >&2
exit 1
END
most_lines=12 expect 3 'no luck today' 32-A --pg-bin "$work/dying"
sed -i '/no luck/d' "$work/dying/postgres"
expect 3 'exit 1; its log is empty' 32-A --pg-bin "$work/dying"

TMPDIR=$work/nowhere expect 3 "$work/nowhere" 32-A
long=$work/scratch/$(printf 'd%.0s' {1..100})
mkdir "$long"
chmod 777 "$long"
(
	export TMPDIR=$long
	timeout 60 "$program" 32-A >/dev/null 2>"$work/err"
	[[ $? == 3 ]] && grep -q 'too long' "$work/err" && (($(wc -l <"$work/err") == 1))
) || complain "a socket path too long: $(cat "$work/err")"
rm -rf "$long"

# --- the evidence folder ---

touch "$work/file"
expect 3 "$work/file" 32-A --evidence "$work/file"
if ((EUID != 0)); then
	mkdir -m 555 "$work/closed"
	expect 3 "$work/closed" 32-A --evidence "$work/closed"
fi

# --- signals, at any moment ---

strike() { # signal, seconds, exit code
	local pid code output=$work/evidence/output.txt
	rm -f "$output"
	"$program" 32 --color never >"$work/out" 2>"$work/err" </dev/null &
	pid=$!
	read -rt "$2" <> <(:) || true
	kill "-$1" "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	code=$?
	if ((code == 0)); then
		return # it had ended before
	fi
	# before the run has begun, the signal does what it does to any program
	if [[ $code != "$3" && ($code != 143 || -e $output) ]]; then
		complain "SIG$1 after $2 s: exit $code, not $3: $(cat "$work/err")"
	fi
	if grep -qs '^SUMMARY' "$output"; then
		complain "SIG$1 after $2 s: a SUMMARY of a run that did not end"
	fi
	expect_quiet "SIG$1 after $2 s" 1
}

most_lines=0 expect 0 "" 32-A
umask 777
most_lines=0 expect 0 "" 32-A
umask 022
for moment in 0.01 0.05 0.1 0.2 0.4 0.8 1.2 1.8; do
	strike INT "$moment" 130
	strike TERM "$moment" 130
	strike KILL "$moment" 137
done

strike_group() { # seconds; Ctrl-C twice, heard by the whole process group as from a terminal
	local pid code
	setsid env --default-signal=INT "$program" 32 --color never >"$work/out" 2>"$work/err" </dev/null &
	pid=$!
	read -rt "$1" <> <(:) || true
	kill -INT -- "-$pid" 2>/dev/null
	read -rt 0.03 <> <(:) || true
	kill -INT -- "-$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	code=$?
	if ((code != 130 && code != 0)) || [[ -s $work/err ]]; then
		complain "SIGINT twice to the group after $1 s: exit $code, not 130, or words: $(cat "$work/err")"
	fi
	expect_quiet "SIGINT twice to the group after $1 s" 1
}

for moment in 0.02 0.04 0.06 0.08 0.1 0.15 0.2 0.3 0.5 0.8 1.2 1.8; do
	strike_group "$moment"
done
for moment in 0.05 0.2 0.5 1 1.5 2; do # while the template is made
	for how in "strike_group $moment" "strike KILL $moment 137"; do
		rm -rf "$work/cache" && mkdir "$work/cache"
		COUNTERPROOF_CACHE=$work/cache $how
		[[ -z $(find "$work/cache" -name '.new-*') ]] || complain "$how: a folder is left in the cache"
	done
done

mkdir -m 1777 "$work/marks"
fake sleeping <<END
#!/bin/sh
if [ "\$1" = --version ]; then exec "$pg_bin/postgres" --version; fi
case "\$*" in *--boot*|*--single*|*-C*) exec "$pg_bin/postgres" "\$@" ;; esac
touch "$work/marks/started"
tail --pid=$$ -f /dev/null
exit 1
END
fake stuck <<END
#!/bin/sh
case \$0 in */postgres) exec "$pg_bin/postgres" "\$@" ;; esac
touch "$work/marks/started"
tail --pid=$$ -f /dev/null
END
ln -sf postgres "$work/stuck/initdb"

strike_waiting() { # signal, folder of binaries; the signal is heard while one of them does not get on
	local pid code i begin_s
	rm -f "$work/marks/started"
	"$program" 32-A --color never --pg-bin "$work/$2" >"$work/out" 2>"$work/err" </dev/null &
	pid=$!
	for ((i = 0; i < 400; i++)); do
		[[ ! -e $work/marks/started ]] || break
		read -rt 0.05 <> <(:) || true
	done
	[[ -e $work/marks/started ]] || complain "$2: did not get as far as it should: $(cat "$work/err")"
	begin_s=$SECONDS
	kill "-$1" "$pid"
	wait "$pid"
	code=$?
	if ((code != 130 || SECONDS - begin_s > 2)) || [[ -s $work/err ]]; then
		complain "SIG$1 with $2: exit $code after $((SECONDS - begin_s)) s: $(cat "$work/err")"
	fi
	expect_quiet "SIG$1 with $2" 1
}

strike_waiting TERM sleeping
strike_waiting INT sleeping
COUNTERPROOF_CACHE=$work/cold strike_waiting TERM stuck

(
	trap '' HUP # as nohup does
	exec "$program" 32-B >"$work/out" 2>"$work/err" </dev/null
) &
read -rt 0.1 <> <(:) || true
kill -HUP $! 2>/dev/null
wait $! || complain "SIGHUP under nohup: exit $?: $(cat "$work/err")"
expect_quiet 'SIGHUP under nohup' 1

# --- a stream that is closed or full: that is said, and what was printed does not land in the evidence ---

for stream in '>&-' '>/dev/full'; do
	eval '"$program" 32-A 2>"$work/err" </dev/null '"$stream"
	[[ $? == 3 && $(<"$work/err") == 'cannot write to stdout' ]] ||
		complain "stdout $stream: does not end with 3 and one line: $(cat "$work/err")"
	[[ $(tail -n 1 "$work/evidence/output.txt") == SUMMARY* ]] ||
		complain "stdout $stream: $(tail -n 1 "$work/evidence/output.txt") ends output.txt"
done

exit $((failures > 0))
