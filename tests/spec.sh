#!/usr/bin/env bash
# Files of the scenario language, right and wrong: what each is found to be, its exit code, and the words of it.
#
#   tests/spec.sh PROGRAM    PROGRAM is the built counterproof; COUNTERPROOF_PG_BIN names the server's binaries
set -uo pipefail

program=$1
specs=$(dirname "${BASH_SOURCE[0]}")/specs
work=$(mktemp -d /tmp/sp-XXXXXX)
trap 'rm -rf "$work"' EXIT
failures=0

complain() {
	printf '%s\n' "$*" >&2
	failures=$((failures + 1))
}

# The file must end with this exit code, and each pattern must be found in what it says; one with ! before it must not.
judge() { # exit code, file, pattern...; options in the array `options`
	local code=$1 file=$2 got=0 pattern
	shift 2
	"$program" spec "$file" --color never --evidence "$work/evidence" "${options[@]}" >"$work/out" 2>&1 </dev/null || got=$?
	[[ $got == "$code" ]] || complain "$file ${options[*]}: exit $got, not $code: $(tail -n 5 "$work/out")"
	for pattern; do
		if [[ $pattern == !* ]]; then
			! grep -qE -- "${pattern#!}" "$work/out" || complain "$file ${options[*]}: says ${pattern#!}"
		else
			grep -qE -- "$pattern" "$work/out" || complain "$file ${options[*]}: does not say $pattern"
		fi
	done
}

judge_text() { # exit code, pattern, text
	printf '%b' "$3" >"$work/text.spec"
	judge "$1" "$work/text.spec" "$2"
}

# A text that is no file of the language, refused at line:column before anything runs.
refuse() { # line:column, words, text
	printf '%b' "$3" >"$work/bad.spec"
	judge 2 "$work/bad.spec" "bad.spec:$1: .*$2" '!SUMMARY'
}


# --- what is found, whatever runs side by side ---

for jobs in 1 2; do
	options=(--jobs "$jobs")
	judge 1 "$specs/doctors_rr.spec" 'FAIL +invariant somebody; expected every interleaving, got 2 of 14$' \
		'FAIL +serializable; .* got 2 of 14$' 'not serializable, write skew \(G2\)' '\(on_call=0\)' \
		'14 interleavings run, 6 more skipped' 'shortest: r1 r2 w1 c1 w2 c2$' \
		"replay .*doctors_rr.spec --order 'r1 r2 w1 c1 w2 c2'"
	judge 0 "$specs/doctors_serializable.spec" '14 interleavings run, .* 12 retries' 'retries_40001=12 retries_40P01=0' \
		'4 x alice committed; bob 40001 at c2, committed in attempt 2; as in the serial order alice bob' '!false conflict'
	judge 0 "$specs/../../sql/isolation/unrelated_keys.spec" '6 of the retries after 40001 .*: false conflict possible'
	judge 1 "$specs/lost_update.spec" '12 x a committed; b committed; not serializable: lost update \(P4\)' \
		'rb answered \(10\), serially \(11\)' 'FAIL +serializable; .* got 2 of 14$'
	judge 1 "$specs/blind.spec" 'not serializable; nearest is the serial order' '!\((P4|G)'
	judge 0 "$specs/deadlock.spec" ' x a 40P01 at a2 after a wait, committed in attempt 2; b committed; as in' 'serial order a b'
	judge 0 "$specs/killed.spec" '2 x one lost; two committed; as in the serial order two' \
		'die: kill one: fired in 1 of 3' '1 x one committed; two committed'
	judge 0 "$specs/faults.spec" 'crash: restart immediate: fired in 34 of 256' 'stop: cancel two: fired in 7 of 256' \
		'7 x one committed; two 57014 at also after a wait, committed'
	judge 1 "$specs/anomalies_rc.spec" 'read skew \(G-single\)'
	judge 1 "$specs/always.spec" 'FAIL +invariant whole; .* got 1 of 3$' '\(n=1\) after one$' '1 of 2 failed'
	judge 1 "$specs/expect.spec" 'expected 40001 at w, got 23505' 'expected no error at w, got 23505' \
		'2 of 3 failed' 'FAIL +expect of the permutation in line 1[02]'
	judge 1 "$specs/read_only_anomaly.spec" 'not serializable, read-only transaction anomaly \(G2\); nearest'
	judge 0 "$specs/killed_waiting.spec" 'victim lost with a statement under way; as in the serial order' 'fired in 2 of 2'
	judge 0 "$specs/given_up.spec" 'at most [0-9]+, and more when a session begins again' 'a 40001 at f, 40001 at f, 40001 at f, given up after 3 attempts; as in the serial order none'
	judge 0 "$specs/altered.spec" '5 interleavings run' 'PASS.*1 checks held'
	judge 4 "$specs/nothing.spec" 'UNKNOWN.*nothing to judge'
	judge 2 "$specs/blocked.spec" 'blocked.spec:16:19: step c2: its session two still waits in step u2'
done

options=(--order 'r1 w1 c1 r2 w2 c2')
judge 0 "$specs/doctors_rr.spec" 'PASS.*2 checks held' '1 interleavings run'
options=(--order 'r1 r2 w1 c1 w2 c2')
judge 1 "$specs/doctors_rr.spec" 'FAIL +invariant somebody; .* got 0 of 1$'
options=(--order 'r1 w2')
judge 2 "$specs/doctors_rr.spec" 'w2 cannot be next after: r1'
options=(--each)
judge 0 "$specs/killed.spec" 'killed-1  PASS' 'killed-3  PASS' 'scenarios=3'
options=(--timeout 1)
judge 4 "$specs/endless.spec" 'endless.spec:[0-9:]+ step s had not ended after 1 s'

# Nothing that a file says is waited for without end, and nobody who is asked writes.
table='setup { CREATE TABLE t (n int); INSERT INTO t VALUES (1); }'
gone='teardown { DROP TABLE t; }'
holds='invariant i { SELECT FROM t WHERE n > 9 }'
two='session a\nstep s { SELECT 1 }\nsession b\nstep u { SELECT 2 }\n'
options=(--timeout 1)
judge_text 3 'setup failed: ERROR: canceling statement' "setup { SELECT pg_sleep(1000) }\n$holds\n$two"
judge_text 3 'teardown failed: ERROR: canceling statement' \
	"$table\nteardown { DROP TABLE t; SELECT pg_sleep(1000) }\n$holds\n${two/SELECT 1/SELEC 1}"
judge_text 3 'invariant i cannot be asked: ERROR:  canceling statement' \
	"$table\n$gone\ninvariant i { SELECT FROM t WHERE pg_sleep(1000) IS NULL }\n$two"
judge_text 2 'step s is marked read, but .* canceling statement' \
	"$table\n$gone\n$holds\n${two/step s \{ SELECT 1/step s read { SELECT pg_sleep(1000)}"
stubborn='BEGIN LOOP BEGIN PERFORM pg_sleep(9); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END'
judge_text 3 'setup failed: server closed the connection' "setup { DO '$stubborn' }\n$holds\n$two"
judge_text 4 'UNKNOWN .*text.spec:5:6: step s had not ended after 1 s, and was cancelled; then: step s timed out after 2 s' \
	"$table\n$gone\n$holds\nsession a\nstep s { DO '$stubborn' }\nsession b\nstep u { SELECT 2 }\n"
options=()
judge_text 3 'invariant i cannot be asked: ERROR:  cannot execute UPDATE in a read-only' \
	"$table\n$gone\ninvariant i { UPDATE t SET n = 10 WHERE n > 9 RETURNING n }\n$two"
judge_text 3 'BROKEN .*teardown failed: ERROR: table "u" does not exist' "$table\nteardown { DROP TABLE u; }\n$holds\n$two"
judge_text 2 'but in a read-only subtransaction it fails: it ends its connection' \
	"$table\n$gone\n$holds\n${two/step s \{ SELECT 1/step s read { SELECT pg_terminate_backend(pg_backend_pid())}"

# What is wrong with a step shows in every interleaving, and is no outcome like others; unless that is what is meant.
wrong='text.spec:5:6: step s is wrong: each time that it was run it failed with'
judge_text 2 "$wrong 42601, syntax error at or near" "$table\n$gone\n$holds\n${two/SELECT 1/SELEC 1}"
judge_text 2 "$wrong 42P01, relation .v. does not exist" "$table\n$gone\n$holds\n${two/SELECT 1/SELECT FROM v}permutation s u\n"
judge_text 0 'a 42601 at s' "$table\n$gone\n$holds\n${two/SELECT 1/SELEC 1}permutation s u\nexpect 42601 at s\n"
dropped='session a\nstep s { DROP TABLE t }\nsession b\nstep u { SELECT FROM t }\n'
judge_text 0 '1 x .*b 42P01 at u' "$table\n${gone/TABLE/TABLE IF EXISTS}\ninvariant i { SELECT FROM pg_class WHERE false }\n$dropped"
refused='session a\nsetup { SET ROLE pg_monitor }\nstep s { SELECT FROM t }\n'
judge_text 0 'a 42501 at s' "$table\n$gone\n$holds\n$refused"

# Without a teardown a setup that makes something cannot be run twice, in as many lanes as there may be.
for jobs in 1 2; do
	options=(--jobs "$jobs")
	judge_text 3 'setup failed: .* already exists; the setup has run before: what it makes, a teardown' "$table\n$holds\n$two"
done
options=()

# Two transactions in one step: what the first was is decided there; the second must not have done anything yet.
pair() { # a step of session a, and a last one
	printf 'session a\\nsetup { BEGIN }\\nstep r { SELECT n FROM t }\\nstep e { %s }\\nstep w { UPDATE t SET n = 2 }\\n' "$1"
	printf 'step c { %s }\\nsession b\\nstep u { UPDATE t SET n = 3 }\\n' "$2"
}
judge_text 0 'PASS.*1 checks held' "$table\n$gone\nobserve { SELECT n FROM t }\n$(pair 'ROLLBACK; BEGIN' COMMIT)"
judge_text 0 'a committed' "$table\n$gone\nobserve { SELECT n FROM t }\n$(pair 'COMMIT AND CHAIN' ROLLBACK)"
for twice in 'COMMIT; BEGIN; SELECT 1' 'ROLLBACK; BEGIN; SELECT 1/0' 'COMMIT AND CHAIN; SELECT 1'; do
	judge_text 2 'text.spec:7:6: step e ends a transaction and does more than begin the next one' \
		"$table\n$gone\nobserve { SELECT n FROM t }\n$(pair "$twice" COMMIT)"
done
judge_text 0 'PASS.*1 checks held' \
	"$table\n$gone\nobserve { SELECT n FROM t }\n$(pair 'SAVEPOINT s; ROLLBACK TO s; SELECT 1' COMMIT)permutation r e w c u\n"

# A transaction that had failed is not in effect, whatever follows its end in the same step.
judge_text 0 'b 40001 at w2.*; as in the serial order a;' "$table\n$gone\nobserve { SELECT n FROM t }\n$(
	printf 'session %s\\nsetup { BEGIN ISOLATION LEVEL REPEATABLE READ; }\\n' a
	printf 'step %s { UPDATE t SET n = n + 1 }\\nstep %s { COMMIT; SELECT 1 }\\n' w1 c1
	printf 'session %s\\nsetup { BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM t; }\\n' b
	printf 'step %s { UPDATE t SET n = n + 1 }\\nstep %s { COMMIT; SELECT 2 }\\n' w2 c2)"

# Names of any kind can be run again by the command that is printed.
named='session a\nstep "it'"'"'s" { SELECT 1 }\nsession b\nstep "u v" { SELECT 2 }\n'
judge_text 1 "replay .* --order 'it'\\\\''s u v'" "$table\n$gone\ninvariant i { SELECT n FROM t }\n$named"
options=(--order "u v it's")
judge_text 1 "shortest: u v it's" "$table\n$gone\ninvariant i { SELECT n FROM t }\n$named"

# So can a file that was named from another folder than the checkout.
options=()
cp "$specs/lost_update.spec" "$work/here.spec"
cd "$work" || exit 1
COUNTERPROOF_HOME=/ judge 1 here.spec "replay \./run.sh spec $work/here.spec --order"
cd - >/dev/null || exit 1

judge 2 "$specs/reads.spec" 'reads.spec:10:6: step s is marked read, but in a read-only subtransaction it fails'
judge 2 "$specs/reads_locks.spec" 'reads_locks.spec:5:6: step s is marked read, but it takes locks'

# A sample is drawn by the seed.
options=(--seed 7 --jobs 1)
judge 1 "$specs/sample.spec" '5 interleavings run'
grep ' x ' "$work/out" >"$work/once"
judge 1 "$specs/sample.spec"
grep ' x ' "$work/out" | cmp -s - "$work/once" || complain "a sample of one seed is not the same twice"
options=()
judge 1 "$specs/bound.spec" 'interleavings to run: at most 6$' ' [1-6] interleavings run' 'lost update'


# --- what is refused ---

one='session a\nstep s { SELECT 1 }\n'
refuse 3:15 'undefined step "x"' "${one}permutation s x\n"
refuse 3:6 'unused step: t' "${one}step t { SELECT 2 }\npermutation s\n"
refuse 2:8 'unterminated sql block' 'session a\nstep s { SELECT 1'
refuse 2:19 'unexpected character' "session a\nstep s { SELECT '}' }\n"
refuse 4:6 'duplicate step name: s' "${one}session b\nstep s { SELECT 1 }\n"
refuse 3:1 'duplicate session name: a' "${one}session a\nstep t { SELECT 1 }\n"
refuse 3:11 'duplicate invariant name: i' 'invariant i { SELECT 1 }\n\ninvariant\ti { SELECT 1 }\n'"$one"
refuse 2:1 'not text' 'session a\n\001step s { SELECT 1 }\n'
refuse 1:13 'only "always"' "invariant x sometimes { SELECT 1 }\n$one"
refuse 4:8 'no SQLSTATE' "${one}permutation s\nexpect 4001 at s\n"
refuse 4:8 'no SQLSTATE' "${one}permutation s\nexpect 00000 at s\n"
refuse 4:8 'no step of the permutation' "${one}permutation s\nexpect 40001 at t\n"
refuse 1:8 'has to follow a permutation' "expect none\n$one"
refuse 3:7 'undefined session "b"' "${one}fault f kill b\n"
refuse 3:9 'a fault is' "${one}fault f explode a\n"
refuse 3:7 'undefined session "q"' "${one}retry q 3\n"
refuse 3:9 'explore takes' "${one}explore some\n"
refuse 3:9 'explore faults: the file has none' "${one}explore faults\n"
head -c 10485760 /dev/zero | tr '\0' ' ' >"$work/big.spec"
judge 2 "$work/big.spec" 'big.spec:1:1: longer than a megabyte'

exit $((failures > 0))
