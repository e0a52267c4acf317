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

# The case's checks must notice what the edit does to the file.
red() { # case, file below sql/, edit for sed -E, part of the line of a check that must fail
	local case=$1 file=$2 edit=$3 part=$4 got=0
	rm -rf "$work/sql"
	cp -R "$home/sql" "$work/sql"
	sed -E -i "$edit" "$work/sql/$file"
	if cmp -s "$home/sql/$file" "$work/sql/$file"; then
		printf '' >"$work/output"
		fail "$case: '$edit' changes nothing in $file"
	fi
	"$program" "$case" --sql "$work/sql" >"$work/output" 2>&1 || got=$?
	((got == 1)) || fail "$case with '$edit' in $file: exit $got instead of 1"
	grep -F 'FAIL ' "$work/output" | grep -qF "$part" || fail "$case with '$edit' in $file: no FAIL of \"$part\""
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

echo "$rows edits, each seen red"
