#!/usr/bin/env bash
# isolation_red.sh PROGRAM: each negative control of the suite isolation is red without its guard, each guard's case is red
# when the guard is gone. A file below sql/isolation/ is changed in a copy of sql/; the case must FAIL by the named check.
set -euo pipefail

program=$1
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export COUNTERPROOF_EVIDENCE=$work/evidence
rows=0

fail() {
	printf 'isolation_red.sh: %s\n' "$*" >&2
	sed 's/^/| /' "$work/output" >&2
	exit 1
}

# The case's checks must notice what the edit does to the files: each part is found in the line of a check that failed.
red() { # case, files below sql/ (a pattern), edit for sed -E, part...
	local case=$1 files=$2 edit=$3 part got=0
	shift 3
	rm -rf "$work/sql"
	cp -R "$home/sql" "$work/sql"
	# shellcheck disable=SC2086 # a pattern
	(cd "$work/sql" && sed -E -i "$edit" $files)
	if diff -rq "$home/sql" "$work/sql" >"$work/output"; then
		fail "$case: '$edit' changes nothing in $files"
	fi
	"$program" "$case" --sql "$work/sql" >"$work/output" 2>&1 || got=$?
	((got == 1)) || fail "$case with '$edit' in $files: exit $got instead of 1"
	for part; do
		grep -F 'FAIL ' "$work/output" | grep -F "$part" >/dev/null || fail "$case with '$edit' in $files: no FAIL of \"$part\""
		rows=$((rows + 1))
	done
}

# Several edits of files that a case judges one after another, seen in one run: `change`, then `see`, then `seen` for each.
fresh_copy() {
	rm -rf "$work/sql"
	cp -R "$home/sql" "$work/sql"
}

change() { # file below sql/, edit for sed -E; or = and the file, below sql/, that takes its place
	case $2 in
	=*) cp "$home/sql/${2#=}" "$work/sql/$1" ;;
	*) sed -E -i "$2" "$work/sql/$1" ;;
	esac
	if cmp -s "$home/sql/$1" "$work/sql/$1"; then
		printf '' >"$work/output"
		fail "'$2' changes nothing in $1"
	fi
}

see() { # case
	local got=0
	"$program" "$1" --sql "$work/sql" >"$work/output" 2>&1 || got=$?
	cp "$COUNTERPROOF_EVIDENCE/output.txt" "$work/output"
	((got == 1)) || fail "$1: exit $got instead of 1"
}

seen() { # step, part of the line of a check of it that must fail
	awk -v "step=step     $1" '/^step /{on = $0 == step} on && /^FAIL /' "$work/output" | grep -F "$2" >/dev/null ||
		fail "step $1: no FAIL of \"$2\""
	rows=$((rows + 1))
}

stricter='s/REPEATABLE READ/SERIALIZABLE/'
weaker='s/SERIALIZABLE/REPEATABLE READ/'

red isolation/skew isolation/doctors_repeatable_read.spec "$stricter" 'invariant somebody: shortest interleaving'
red isolation/skew isolation/doctors_serializable.spec "$weaker" 'invariant somebody: interleavings in which it holds'

row=isolation/row_checks.spec
red isolation/rows $row "$stricter" 'invariant somebody: shortest interleaving'
red isolation/rows $row "s/ CHECK .*\)\);/);/; /^step w1/s/'off'/'away'/" 'invariant each_row: interleavings in which it holds'

red isolation/insert isolation/insert_repeatable_read.spec "$stricter" 'invariant three: shortest interleaving'
red isolation/insert isolation/insert_serializable.spec "$weaker" 'invariant three: interleavings in which it holds'
red isolation/insert isolation/insert_serializable.spec '/^retry/d' 'what the 14 interleavings cost'

unlocked='s/ FOR UPDATE\) x/) x/'
red isolation/lock-all isolation/lock_all_read_committed.spec "$unlocked" 'invariant somebody: interleavings in which it holds'
red isolation/lock-all isolation/lock_all_repeatable_read.spec "$unlocked" 'invariant somebody: interleavings in which it holds'
red isolation/lock-all isolation/lock_all_repeatable_read.spec '/^retry/d' 'what the 6 interleavings cost'

for file in isolation/count_row_{read_committed,repeatable_read}.spec; do
	red isolation/count-row "$file" 's/ WHERE n > 1//' 'invariant somebody: interleavings in which it holds'
	red isolation/count-row "$file" '/^step w1/,/^step c1/s/n = n - 1/n = n/' 'invariant count_is_true: interleavings in which it holds'
done

all_rows='s/SELECT \(.*FOR UPDATE/SELECT count(*) FROM (SELECT FROM doctors WHERE on_call FOR UPDATE) x/'
red isolation/own-row isolation/own_row_read_committed.spec "$all_rows" 'invariant somebody: shortest interleaving'
red isolation/own-row isolation/own_row_repeatable_read.spec "$all_rows" 'invariant somebody: shortest interleaving'

red isolation/paths isolation/paths_one_serializable.spec "$stricter" 'invariant somebody: shortest interleaving'
red isolation/paths isolation/paths_rule_missing.spec "$weaker" 'serializable: interleavings in which it holds'
red isolation/paths isolation/paths_rule_missing.spec \
	"s/(SET on_call = false WHERE name = 'bob');/\1 AND (SELECT count(*) FROM doctors WHERE on_call) > 1;/" \
	'invariant somebody: shortest interleaving'

red isolation/levels isolation/phantom_read_committed.spec 's/READ COMMITTED/REPEATABLE READ/' 'serializable: shortest interleaving'
red isolation/levels isolation/phantom_read_uncommitted.spec 's/READ UNCOMMITTED/REPEATABLE READ/' 'outcomes at Read Uncommitted'
red isolation/levels isolation/phantom_repeatable_read.spec 's/REPEATABLE READ/READ COMMITTED/' 'serializable: interleavings in which it holds'
red isolation/levels isolation/dirty_read_uncommitted.spec 's/ROLLBACK/COMMIT/' 'serializable: interleavings in which it holds'

doctors=isolation/doctors.sql
nothing_read='s/SELECT count\(\*\) FROM doctors WHERE on_call$/SELECT 2/'
red isolation/retry $doctors 's/(on_call = false WHERE name = who)/\1 AND (SELECT count(*) FROM doctors WHERE on_call) > 1/' \
	'written again: doctors on call'
red isolation/retry $doctors "$nothing_read" 'c2: bob'\''s COMMIT is refused'
red isolation/retry $doctors "$nothing_read" 'COMMIT again: what bob is told is'
red isolation/retry $doctors "$nothing_read" 'decided again: bob reads'

never_wins='s/UPDATE doctors SET on_call = true WHERE name = who/SELECT/'
for check in 'by number: attempts' 'by number: acknowledged' 'by deadline: attempts' 'in time: attempts' 'not looked at: acknowledged'; do
	red isolation/give-up $doctors "$never_wins" "$check"
done

a=isolation/doctors_a.sql b=isolation/doctors_b.sql
red isolation/psql $a 's/id = 1/id = 9/' 'Repeatable Read, A at look'
red isolation/psql $a 's/:level/REPEATABLE READ/' 'Serializable, B at c2'
red isolation/psql $b 's/:level/REPEATABLE READ/' 'of which the server remembers'
red isolation/psql $b '/^-- c2/,/^-- again/s/^COMMIT;$/SELECT 1\/0;/' 'expected commit_state 40001, got commit_state 22012'
red isolation/psql $b '/^-- w2/,/^-- c2/s/RETURNING id/RETURNING no_column/' 'got ERROR:'
red isolation/psql $b '/^-- again/,/^COMMIT/s/> 1/> 0/' 'Serializable, B at again'

# Without psql there is nothing to say, and that is said.
mkdir "$work/no-psql"
chmod a+rx "$work"
IFS=: read -ra folders <<<"$PATH"
for folder in "${folders[@]}"; do
	find "$folder/" -maxdepth 1 -type f,l ! -name psql -exec ln -sf -t "$work/no-psql" {} + 2>/dev/null || true
done
got=0
PATH=$work/no-psql "$program" isolation/psql >"$work/output" 2>&1 || got=$?
((got == 4)) || fail "isolation/psql without psql: exit $got instead of 4"
grep -q '^isolation/psql *SKIP .*psql is not installed' "$work/output" || fail 'isolation/psql without psql: not SKIP'
# The like system's own transactions: twins that are none, wrong orders put right, right ones put wrong.
fresh_copy
change isolation/like_install_statements.spec 's/(step il .*) FOR UPDATE/\1/'
change isolation/like_snapshot_statements.spec 's/REPEATABLE READ/READ COMMITTED/'
change isolation/like_install_sum_first.spec =isolation/like_install_statements.spec
change isolation/like_snapshot_read_committed.spec =isolation/like_snapshot_statements.spec
change like/mutants/M18/rebuild_install.sql =like/rebuild_install.sql
change like/mutants/M36/rebuild_install.sql =like/rebuild_install.sql
change like/mutants/M33/consume.sql =like/consume.sql
see isolation/like-rebuild
holds='interleavings in which it holds'
shortest='shortest interleaving that breaks it'
seen 'statement by statement: the consumer and an install' "invariant counts: $holds"
seen 'statement by statement: a writer and a snapshot' "invariant counts: $holds"
seen 'sum before the lock, statement by statement' "invariant counts: $shortest"
seen 'a snapshot for each of the two statements' "invariant counts: $shortest"
seen 'M18: sum before the lock' "invariant counts: $shortest"
seen 'M36: one statement' "invariant counts: $shortest"
seen 'M33: base_seq read in the statement that waits' "invariant counts: $shortest"

fresh_copy
change like/rebuild_install.sql =like/mutants/M18/rebuild_install.sql
see isolation/like-rebuild
seen 'as they are' "invariant counts: $holds"

fresh_copy
change isolation/like_consumers_statements.spec 's/(WHERE id = 1) FOR UPDATE/\1/'
change like/mutants/M13/consume.sql =like/consume.sql
change like/consume.sql 's/v_fresh := v_listed - v_known/v_fresh := v_listed/'
see isolation/like-consumers
seen 'batches that share events' 'interleavings in which a step ends in an error'
seen 'batches that share nothing, statement by statement' "invariant watermark: $holds"

fresh_copy
change like/consume.sql =like/mutants/M13/consume.sql
change like/mutants/M13/consume.sql =like/consume.sql
see isolation/like-consumers
seen 'batches that share nothing' "invariant watermark: $holds"
seen 'batches that share nothing' "invariant drained: $holds"
seen 'M13: no lock on the watermark row' "invariant watermark: $shortest"

fresh_copy
change isolation/like_writers_statements.spec 's/ FOR UPDATE//'
change isolation/like_writers_statements_and_call.spec 's/ FOR UPDATE//'
change isolation/like_writers_unlocked.spec =isolation/like_writers_statements_and_call.spec
change like/mutants/M35/write.sql =like/write.sql
see isolation/like-writers
seen 'two writers of one pair that has a row, statement by statement' "invariant events: $holds"
seen 'one statement by statement, one as it is' "invariant events: $holds"
seen 'M35: one statement with CTEs' "serializable: $shortest"
seen 'the old state read without the lock, statement by statement' "invariant events: $shortest"

fresh_copy
change like/mutants/M04/write.sql =like/write.sql
change like/write.sql =like/mutants/M35/write.sql
see isolation/like-writers
seen 'two writers of one pair that nobody has touched' "serializable: $holds"
seen 'a like against an unlike of a pair that nobody has touched' "serializable: $holds"
seen 'M04: the fact row is not locked' 'interleavings in which the key of the outbox is met'

fresh_copy
change like/consume.sql "s/'APPLIED' END/'COVERED' END/"
see isolation/like-consumers
seen 'batches that share nothing' "invariant effects: $holds"

fresh_copy
change like/write.sql 's/last = s.last \+ 1/last = s.last + 2/; s/version := version \+ 1/version := version + 2/'
see isolation/like-writers
seen 'two writers of one pair that nobody has touched' "invariant facts: $holds"
seen 'two writers of one pair that nobody has touched' "invariant numbers: $holds"

# The number drawn before the row is locked; the old state not compared.
fresh_copy
change like/write.sql 's/UPDATE like_seq s SET last = s.last \+ 1 (WHERE s.id = 1) RETURNING s.last INTO STRICT seq;/SELECT s.last + 1 INTO STRICT seq FROM like_seq s \1; UPDATE like_seq s SET last = like_set.seq \1;/'
see isolation/like-writers
seen 'two writers of two pairs, one of whom rolls back first' 'interleavings in which a step ends in an error'

fresh_copy
change like/write.sql 's/changed := liked <> p_want/changed := true/'
see isolation/like-writers
seen 'a like against two unlikes of a liked pair' "invariant events: $holds"

fresh_copy
change isolation/like_wrapped_reverse.spec '/^session b/,$ { s/, 2, true/, 0, true/; s/, 1, true/, 2, true/; s/, 0, true/, 1, true/ }'
change isolation/like_unrelated_repeatable_read.spec 's/REPEATABLE READ/READ COMMITTED/'
see isolation/like-wrapped
seen 'Read Committed: two likes in one transaction against the same in reverse' 'interleavings with a deadlock'
seen 'Repeatable Read: two likes that have nothing in common' 'whole transactions run again after 40001'

fresh_copy
change isolation/like_wrapped_reverse.spec '/^retry/d'
change isolation/like_unrelated_repeatable_read.spec '/^retry/d'
see isolation/like-wrapped
seen 'Read Committed: two likes in one transaction against the same in reverse' 'whole transactions run again after 40P01'
seen 'Repeatable Read: two likes that have nothing in common' "invariant stored: $holds"

fresh_copy
change isolation/repair_locks_then_counts.spec 's/ FOR UPDATE//'
change isolation/repair_locks_then_counts_rollback.spec 's/SET n = \(SELECT count.*\) WHERE/SET n = n WHERE/'
change isolation/repair_one_statement.spec 's/READ COMMITTED/REPEATABLE READ/'
change isolation/repair_repeatable_read.spec 's/REPEATABLE READ/READ COMMITTED/'
see isolation/repair
seen 'lock, then count; the writer commits' "invariant drifted: $holds"
seen 'lock, then count; the writer rolls back' "invariant drifted: $holds"
seen 'one statement at Read Committed' 'interleavings in which the server refuses anything'
seen 'one statement at Repeatable Read, retried whole' "invariant drifted: $holds"

fresh_copy
change isolation/repair_repeatable_read.spec '/^retry/d'
see isolation/repair
seen 'one statement at Repeatable Read, retried whole' "invariant drifted: $holds"

fresh_copy
change isolation/two_deletes.spec "s/n - current_setting.*::int/n - 1/"
change isolation/two_deletes_unguarded.spec =isolation/two_deletes.spec
see isolation/two-deletes
seen 'down by what was removed' "invariant drifted: $holds"
seen 'down by what was removed' "invariant negative: $holds"
seen 'down by one' "invariant drifted: $shortest"
seen 'down by one' "invariant negative: $shortest"

fresh_copy
change isolation/counter_rows_unordered.spec =isolation/counter_rows_sorted.spec
change isolation/counter_rows_sorted.spec =isolation/counter_rows_unordered.spec
change isolation/counter_rows_summed.spec 's/count\(\*\) AS likes/1 AS likes/'
see isolation/counter-rows
seen 'as they came' 'interleavings with a deadlock'
seen 'sorted by post' 'interleavings in which a step ends in an error'
seen 'locked in order, one sum a post' "invariant both: $holds"

fresh_copy
change isolation/counter_rows_unordered.spec '/^retry/d'
see isolation/counter-rows
seen 'as they came' "invariant both: $holds"


# Hermitage's rows. A level that prevents more, one that prevents less, a write that others see before its transaction ends, a
# transaction whose effect is taken back: between them each anomaly is seen to occur where it must not, and the other way around.
hermitage='isolation/hermitage/*.spec'
red isolation/hermitage "$hermitage" 's/BEGIN;/BEGIN ISOLATION LEVEL SERIALIZABLE;/' \
	'PMP predicate-many-preceders at read committed; expected occurs, got prevented' \
	"PMP by a write's condition at read committed; expected occurs, waits, got prevented" \
	'P4 lost update at read committed; expected occurs, waits, got prevented' \
	'G-single read skew at read committed; expected occurs, got prevented' \
	'G-single by conditions at read committed; expected occurs, got prevented' \
	"G-single by a write's condition at read committed; expected occurs, got prevented" \
	'G2-item write skew at read committed; expected occurs, got prevented' \
	'G2 write skew by conditions at read committed; expected occurs, got prevented' \
	'G2 with two anti-dependency edges at read committed; expected occurs, got prevented' \
	'G2-item write skew at repeatable read; expected occurs, got prevented' \
	'G2 write skew by conditions at repeatable read; expected occurs, got prevented' \
	'G2 with two anti-dependency edges at repeatable read; expected occurs, got prevented' \
	'G0 dirty write at read committed; expected prevented, waits, got prevented, 40001 at w2x after a wait' \
	'OTV observed transaction vanishes at read committed; expected prevented, waits, got prevented, 40001'
red isolation/hermitage "$hermitage" 's/BEGIN;/BEGIN ISOLATION LEVEL READ COMMITTED;/' \
	'PMP predicate-many-preceders at repeatable read; expected prevented, got occurs' \
	"PMP by a write's condition at repeatable read; expected prevented, 40001 at w2 after a wait, got occurs" \
	'P4 lost update at repeatable read; expected prevented, 40001 at w2x after a wait, got occurs' \
	'G-single read skew at repeatable read; expected prevented, got occurs' \
	'G-single by conditions at repeatable read; expected prevented, got occurs' \
	"G-single by a write's condition at repeatable read; expected prevented, 40001 at w1 without a wait, got occurs" \
	'G2-item write skew at serializable; expected prevented, 40001 at c2 (COMMIT), got occurs' \
	'G2 write skew by conditions at serializable; expected prevented, 40001 at c2 (COMMIT), got occurs' \
	'G2 with two anti-dependency edges at serializable; expected prevented, 40001 at w1x without a wait, got occurs' \
	'G1c circular information flow at serializable; expected prevented, 40001 at c2 (COMMIT), got prevented' \
	'G0 dirty write at serializable; expected prevented, 40001 at w2x after a wait, got prevented, waits' \
	'OTV observed transaction vanishes at serializable; expected prevented, 40001 at w2x after a wait, got prevented, waits'
red isolation/hermitage "$hermitage" 's/^(step w.*;) \}/\1 COMMIT; BEGIN; }/' \
	'G0 dirty write at read committed; expected prevented, waits, got occurs' \
	'G1a aborted read at read committed; expected prevented, got occurs' \
	'G1b intermediate read at read committed; expected prevented, got occurs' \
	'G1c circular information flow at read committed; expected prevented, got occurs'
red isolation/hermitage isolation/hermitage/otv.spec \
	's/^(step w2x .*;) \}/\1 COMMIT; BEGIN; }/; s/^step c2 .*/step c2 { UPDATE test SET value = 11 WHERE id = 1; COMMIT; }/' \
	'OTV observed transaction vanishes at read committed; expected prevented, waits, got occurs'

red isolation/unrelated isolation/unrelated_keys.spec "$weaker" 'decisions run again, of 14 interleavings' \
	'the second COMMIT is refused'
red isolation/unrelated isolation/unrelated_keys.spec 's/SELECT id FROM item WHERE id = [23];/SELECT count(*) FROM item;/' \
	'false conflict possible'
red isolation/unrelated isolation/unrelated_keys.spec 's/^step w1 .*/step w1 { SELECT 1; }/' 'invariant both'
red isolation/unrelated isolation/unrelated_keys_apart.spec 's/3001/5/' 'decisions run again; expected 0' \
	'nobody is refused anything'
red isolation/unrelated isolation/doctors_serializable.spec \
	's/read \{ SELECT count\(\*\)/read { SELECT count(*) > 0/; s/ AND \(SELECT .*\) > 1//' \
	'of these, those that met just what had been refused; expected 0'
red isolation/unrelated isolation/unrelated_look.sql 's/^SELECT .*/SELECT 2;/' 'locks of a page or a relation'
red isolation/unrelated isolation/unrelated_table.sql 's/^CREATE .*/& INSERT INTO item VALUES (2);/' 'locks of a row'

keep='s/CREATE TABLE/CREATE TABLE IF NOT EXISTS/; s/DROP TABLE/DELETE FROM/'
red isolation/unrunnable isolation/blocked_step.spec 's/^permutation w1 w2 c2 c1/permutation w1 w2 c1 c2/' \
	'the second permutation is refused' 'permutations judged' 'in which a step waited'
red isolation/unrunnable isolation/blocked_step.spec "$keep" 'tables left behind'
red isolation/unrunnable isolation/blocked_step.spec 's/^teardown .*//' 'what else went wrong'
# Four setups, two of them for serial orders: together they last longer than a step may, and none of them is cancelled.
red isolation/unrunnable isolation/blocked_step.spec 's/^  INSERT/  SELECT pg_sleep(8);&/' 'less than the limit of one step'
red isolation/unrunnable isolation/unknown_step.spec 's/r3/r2 r1/' 'unknown_step.spec is refused'
red isolation/unrunnable isolation/unused_step.spec 's/^permutation .*/& c1/' 'unused_step.spec is refused'

red isolation/lost isolation/lost_session.spec 's/BEGIN;/SELECT 1;/' 'invariant committed' 'permutations that end so: t1 lost'
red isolation/lost isolation/lost_session.spec 's/terminate t1/terminate t2/' 'permutations that end so: t1 lost; t2 committed'
red isolation/lost isolation/lost_session.spec 's/^permutation w1 w1_last c1/& vanishes/' 'vanishes: kill t1'
red isolation/lost isolation/lost_session.spec "$keep" 'tables left behind'
red isolation/lost isolation/lost_session.spec 's/^teardown .*//' 'what the lab could not do' 'permutations that have a verdict'

echo "$rows checks, each seen red"
