#!/usr/bin/env bash
# Sees each hygiene check red: builds a small checkout that is clean, spoils one thing at a time, and expects the check
# to fail with the words that name it.
# shellcheck disable=SC2016 # the spoiling texts are meant as they stand
set -euo pipefail

hygiene=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/hygiene.sh
style=$(dirname "$hygiene")/../.clang-format
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

lay_out_clean_tree() {
	rm -rf "$tree"
	mkdir -p "$tree"/{harness,systems/like,systems/other,scenarios/32,cli,tests,deps}
	cp "$style" "$tree/.clang-format"
	cd "$tree"
	touch harness/{base,session,cluster,history,oracle,scenario}.h systems/like/like.h systems/other/other.h cli/options.h
	printf '#include "base.h"\n#include "history.h"\n' >harness/oracle.c
	printf '#include <libpq-fe.h>\n#include "session.h"\n' >harness/session.c
	printf '#include "like.h"\n#include "session.h"\n' >systems/like/like.c
	printf '/*\n * 32-K  x\n *\n * Claim      x\n * Method     x\n * Expect     x\n * Not shown  x\n */\n' >scenarios/32/k_kill9.c
	printf '#include "like.h"\n\nconst Scenario scenario_32_k = {\n\t.id = "32-K",\n};\n' >>scenarios/32/k_kill9.c
	printf 'SCENARIO(32_k)\n' >scenarios/registry.h
	printf '#!/usr/bin/env bash\necho "$1"\n' >tests/x.sh
	printf '{}\n' >deps/package-lock.json
}

report() { # what went wrong, check, spoiled file, output
	printf '%s: %s %s\n%s\n' "$@" >&2
	failures=$((failures + 1))
}

expect_red() { # check, words of the complaint, file to append to, text
	local output
	lay_out_clean_tree
	output=$("$hygiene" "$1" "$tree" 2>&1) || report 'red before anything was spoiled' "$1" '' "$output"
	printf '%b' "$4" >>"$3"
	if output=$("$hygiene" "$1" "$tree" 2>&1); then
		report 'stayed green' "$1" "$3" "$4"
	elif [[ $output != *"$2"* ]]; then
		report "red, but without the words '$2'" "$1" "$3" "$output"
	fi
}

expect_red layers 'the arrow points up' harness/cluster.c '#include "scenario.h"\n'
expect_red layers 'the arrow points up' harness/base.c '#include "like.h"\n'
expect_red layers 'the arrow points up' scenarios/32/k_kill9.c '#include "../../cli/options.h"\n'
expect_red layers 'has no layer' harness/novel.c '#include "base.h"\n'
expect_red layers 'a system knows' systems/like/like.c '#include "cluster.h"\n'
expect_red layers 'a system knows' systems/like/like.c '#include "other.h"\n'
expect_red layers 'the judge knows' harness/oracle.c '#include "session.h"\n'
expect_red layers 'only user of libpq' systems/like/like.c '#include <libpq-fe.h>\n'
expect_red layers 'only user of it' harness/cluster.c '#include <hiredis/hiredis.h>\n'
expect_red layers 'no folder it may look into' cli/main.c '#include "nowhere.h"\n'

expect_red registry 'not on exactly one line' scenarios/32/z_new.c 'const Scenario scenario_32_z = {\n\t.id = "32-Z",\n};\n'
expect_red registry 'not on exactly one line' scenarios/registry.h 'SCENARIO(32_k)\n'
expect_red registry 'no Claim, Method, Expect and Not shown' scenarios/32/z_new.c 'const Scenario scenario_32_z = {\n\t.id = "32-Z",\n};\n'
expect_red registry 'no file defines' scenarios/registry.h 'SCENARIO(32_y)\n'
expect_red registry 'used twice' scenarios/32/k_again.c 'const Scenario scenario_32_k = {\n\t.id = "32-K",\n};\n'
expect_red registry '.id and scenario_32_z differ' scenarios/32/z_new.c 'const Scenario scenario_32_z = {\n\t.id = "32-Y",\n};\n'
expect_red registry "the file's name" scenarios/32/y_new.c 'const Scenario scenario_32_z = {\n\t.id = "32-Z",\n};\n'

expect_red words 'sleep' harness/cluster.c 'usleep(1);\n'
expect_red words 'short pause' tests/check_proc.c 'char *shell = "sleep 0.5";\n'
expect_red words 'a pause stands' tests/x.sh '\tsleep 1\n'
expect_red words 'knows no bound' cli/main.c 'strcpy(a, b);\n'
expect_red words 'goes through a shell' cli/main.c 'x = system("ls");\n'
expect_red words 'is not finished' cli/main.c '/* TO''DO */\n'
expect_red words 'names no registry' deps/package-lock.json '"resolved": ""\n'

expect_red format 'clang-format-14 -i' cli/main.c 'int   x;\n'
expect_red cppcheck 'nullPointer' cli/main.c 'int main(void)\n{\n\tint *x = 0;\n\treturn *x;\n}\n'
expect_red shellcheck 'SC2086' tests/x.sh 'rm $1\n'

exit $((failures > 0))
