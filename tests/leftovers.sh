# Sourced by scripts that kill runs: every process of a run inherits LEFTOVERS_OF, servers and programs included, and makes
# its folders in TMPDIR. The script calls look_out first; complaints are counted in `failures`.
# shellcheck shell=bash

failures=0

look_out() { # folder of the script, name in complaints
	work=$1 about=$2
	chmod 755 "$work"
	mkdir -m 1777 "$work/scratch"
	export LEFTOVERS_OF=$work TMPDIR=$work/scratch COUNTERPROOF_EVIDENCE=$work/evidence
}

complain() {
	printf '%s: %s\n' "$about" "$*" >&2
	failures=$((failures + 1))
}

marked() { # pids of the processes that carry the mark, but for this script's own
	local entry pid
	grep -lzx "LEFTOVERS_OF=$work" /proc/[0-9]*/environ 2>/dev/null | while read -r entry; do
		pid=${entry//[!0-9]/}
		# a zombie or a helper of this very pipeline is no leftover
		if [[ $pid != "$$" && $(ps -o stat= -o args= -p "$pid" 2>/dev/null) != *"${0##*/}"* ]] &&
			grep -qzx "LEFTOVERS_OF=$work" "$entry" 2>/dev/null; then
			printf '%s ' "$pid"
		fi
	done
}

expect_quiet() { # what, seconds; by then nothing of the run is left, neither processes nor folders
	local left='' i
	for ((i = 0; i < $2 * 20; i++)); do
		left=$(marked)
		if [[ -z $left && -z $(ls "$work/scratch") ]]; then
			return
		fi
		read -rt 0.05 <> <(:) || true
	done
	[[ -z $left ]] || left=$(ps -o pid=,args= -p "${left% }" | tr '\n' ';')
	complain "$1: left running: $left left behind: $(ls "$work/scratch")"
}
