#!/usr/bin/env bash
# repair_red.sh PROGRAM [CASE...]: each case of the suite repair is red when what it watches is taken away: a file below
# sql/counters/cases/ is changed in a copy of sql/, or the cases find a tool that lacks a guard: a program that changes
# words of the real one, or repairs in a way that is known to be wrong. The case must FAIL by the named check.
# shellcheck disable=SC2016 # what stands in single quotes is read by sed, or by the wrong tool
set -euo pipefail

program=$(readlink -f "$1")
shift
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export COUNTERPROOF_EVIDENCE=$work/evidence COUNTERPROOF_SQL=$work/sql COUNTERPROOF_PROGRAMS=$work/programs
chmod 755 "$work"
rows=0

fail() {
	printf 'repair_red.sh: %s\n' "$*" >&2
	sed 's/^/| /' "$work/output" >&2
	exit 1
}

# Whether the command line asks for this case.
wanted() { # case, words...
	local word
	(($# > 1)) || return 0
	for word in "${@:2}"; do
		[[ $word != "$1" ]] || return 0
	done
	return 1
}

judge() { # case, what was taken away, part of the line of a check that must fail
	local got=0
	"$program" "$1" >"$work/output" 2>&1 || got=$?
	((got == 1)) || fail "$1 with $2: exit $got instead of 1"
	grep -F 'FAIL ' "$work/output" | grep -F "$3" >/dev/null || fail "$1 with $2: no FAIL of \"$3\""
	rows=$((rows + 1))
}

fresh() {
	rm -rf "$work/sql" "$work/programs"
	cp -R "$home/sql" "$work/sql"
	mkdir "$work/programs"
	ln -s "$(dirname "$program")"/* "$work/programs/"
}

# A file says something else.
red_file() { # case, file below sql/counters/cases/, edit for sed -E, part
	wanted "$1" "${selected[@]}" || return 0
	fresh
	: >"$work/output"
	sed -E -i "$3" "$work/sql/counters/cases/$2"
	! cmp -s "$home/sql/counters/cases/$2" "$work/sql/counters/cases/$2" || fail "$1: '$3' changes nothing in $2"
	judge "$1" "'$3' in $2" "$4"
}

# Another tool: `body` is bash, which may change the array words; $command is check, repair, ...; $conninfo the database's;
# statement() runs SQL there, drop() takes a word away. What it does not end by itself the real tool does with those words.
red_tool() { # case, body, part
	wanted "$1" "${selected[@]}" || return 0
	fresh
	rm "$work/programs/counterproof"
	cat >"$work/programs/counterproof" <<-EOF
		#!/usr/bin/env bash
		real=$(printf %q "$program")
		words=("\$@") command=\$2 conninfo=''
		for ((i = 0; i < \${#words[@]}; i++)); do
			[[ \${words[i]} != --server ]] || conninfo=\${words[i + 1]}
		done
		drop() { # word, how many behind it
			local i kept=()
			for ((i = 0; i < \${#words[@]}; i++)); do
				if [[ \${words[i]} == "\$1" ]]; then i=\$((i + \$2)); else kept+=("\${words[i]}"); fi
			done
			words=("\${kept[@]}")
		}
		statement() {
			printf 'session lab\nstep run {%s}\n' "\$1" | "\$real" isolationtester "\$conninfo"
		}
		$2
		exec "\$real" "\${words[@]}"
	EOF
	chmod 755 "$work/programs/counterproof"
	judge "$1" "$2" "$3"
}

selected=("$@")
# What the wrong tools do instead of repairing.
one_statement='UPDATE par SET n = (SELECT count(*) FROM ch WHERE par_id = par.id)'
inner_join='UPDATE par SET n = c.n FROM (SELECT par_id, count(*) AS n FROM ch GROUP BY 1) c WHERE par_id = id AND par.n <> c.n'
on_check='[[ $command == check ]]'
on_repair='[[ $command == repair ]]'

for cause in listener old_code migration half_finished manual_fix newer_logic; do
	red_file repair/causes causes/$cause.sql 's/^[A-Z\t]/-- &/' 'wrong counts'
done
red_file repair/causes media.yaml '/where:/d' 'check finds it'
red_tool repair/causes "! $on_check || exit 0" 'check finds it'
red_tool repair/causes "! $on_repair || exit 0" 'repaired: wrong counts'

red_file repair/column column.sql 's/DEFAULT 0/DEFAULT 2/' 'wrong counts'
red_file repair/column column.yaml 's/column: by_null/column: by_default/' 'filled: wrong counts'
red_tool repair/column "! $on_repair || words+=(--yes)" 'refused: the counts are what they were'
red_file repair/listener listeners.sql 's/by_recount = \(SELECT.*\) WHERE/by_recount = by_recount + 1 WHERE/' 'who counts again is healed'
red_file repair/negative par.yaml '/writers:/i\    target_where: n >= 0' 'check finds it'
red_tool repair/negative "! $on_repair || exit 0" 'repaired: wrong counts'
red_tool repair/childless "! $on_repair || { statement '$inner_join'; exit 0; }" 'repaired: wrong counts'
red_file repair/childless par.yaml '/writers:/i\    target_where: n IS NOT NULL' 'Drifted'
red_file repair/bulk album.yaml '/writers:/i\    where: album_id < 90' 'Orphans'
red_file repair/bulk album.yaml '/writers:/i\    target_where: photos > 2' 'Scanned'
red_file repair/shapes shapes.yaml 's/DISTINCT c.id/c.id/' 'post.tagged_comments'
red_file repair/shapes shapes.yaml 's/DISTINCT author_id/author_id/' 'post.commenters'
red_file repair/shapes shapes.yaml "s/where: subject_type = 'post'/where: true/" 'post.comments'
red_file repair/shapes shapes.yaml '/parent:/d' 'post_stat.comments'
red_file repair/shapes shapes.sql 's/UNIQUE \(/UNIQUE NULLS NOT DISTINCT (/' 'required: ON CONFLICT missed the NULL'
red_file repair/shapes shapes_wrong.yaml 's/count\(c.id\)/count(DISTINCT c.id)/' 'counted once for each tag'

red_tool repair/dry-run 'drop --dry-run 0' 'rows after 10 dry runs'
red_tool repair/dry-run "! $on_repair || [[ \$* == *--dry-run* ]] || { statement '$one_statement'; exit 0; }" 'rows that were right'

red_tool repair/race "! $on_repair || { statement '$one_statement'; exit 0; }" 'lock: n; expected 4, got 3'
red_file repair/pairing par_separate.yaml 's/separate_transaction/same_transaction/' 'refused lock: wrong counts'
red_file repair/pairing par_unsaid.yaml '$a\    writers: same_transaction' 'refused: wrong counts'
red_file repair/flight flight.yaml 's/separate_transaction/same_transaction/' 'it waits for the writer'
red_tool repair/one-key 'drop --id 1' 'one record: wrong counts'
red_file repair/late par.yaml '/writers:/i\    target_where: id >= 10' 'repaired: wrong counts'
red_tool repair/stop 'drop --chunk 1' 'stopped: wrong counts'
red_tool repair/resume 'drop --resume 1' 'on record'
red_tool repair/restart 'drop --resume 1' 'on record'
red_tool repair/workers 'drop --resume 1' 'the second repairs what the first has not taken'
red_tool repair/workers "[[ \$* != *--jobs* ]] || { statement '$one_statement'; exit 0; }" 'four workers: the number of their run'
red_file repair/lag like.yaml '/^    outbox:/,$d; s/outbox/same_transaction/' 'behind is not drifted'
red_file repair/lag like.yaml '/watermark:/d' 'lag'
red_file repair/outbox like.yaml '/^    outbox:/,$d; s/outbox/same_transaction/' 'right pairing: items whose count'
red_file repair/outbox like_same.yaml '/measure:/d; s/where: liked/where: not liked/' 'required: the events are counted twice'
red_file repair/missing shapes.yaml '/parent:/d' 'the repair waits for the writer'
red_tool repair/storm '[[ $* != *snapshot* ]] || exit 0' 'snapshot: when the writers have stopped'
red_file repair/storm media.sql 's/usage_count - 1/usage_count/' 'when the writers have stopped'

echo "$rows edits, each seen red"
