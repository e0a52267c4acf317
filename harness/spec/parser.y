/*
 * The order of a scenario file: setups, teardown, sessions, permutations.
 */
%code requires
{
#include "build.h"
}

%code
{
#include "spec/scanner.h"

/* Bison fills places of its own accord; a word's is where it begins. */
#define YYLLOC_DEFAULT(current, right, count) ((current) = YYRHSLOC(right, (count) > 0 ? 1 : 0))

static void yyerror(const SpecPlace *place, yyscan_t scanner, Reading *reading, const char *message);
}

%define api.pure full
%define api.prefix {spec_yy}
%define api.location.type {SpecPlace}
%locations
%initial-action { @$ = reading->next; }
%parse-param {void *scanner} {Reading *reading}
%lex-param {void *scanner}

%union
{
	char *string;
	int number;
	SpecBlock *block;
}

%token PERMUTATION "permutation" SESSION "session" SETUP "setup" STEP "step" TEARDOWN "teardown" NOTICES "notices"
%token <string> NAME "name"
%token <string> BLOCK "{"
%token <number> NUMBER "number"
%type <block> setup teardown

%%

file: setups teardown { reading->spec->teardown = $2; } sessions permutations ;

setups:
	%empty
	| setups SETUP BLOCK { build_setup(reading, build_block(reading, $3, @3)); }
	;

setup:
	%empty { $$ = NULL; }
	| SETUP BLOCK { $$ = build_block(reading, $2, @2); }
	;

teardown:
	%empty { $$ = NULL; }
	| TEARDOWN BLOCK { $$ = build_block(reading, $2, @2); }
	;

sessions: session | sessions session ;

session:
	SESSION NAME { build_session(reading, $2, @1); }
	setup { build_last_session(reading)->setup = $4; }
	steps
	teardown { build_last_session(reading)->teardown = $7; }
	;

steps: step | steps step ;

step: STEP NAME BLOCK { build_step(reading, $2, $3, @2); } ;

permutations: %empty | permutations permutation ;

permutation: PERMUTATION { build_permutation(reading, @1); } turns ;

turns: turn | turns turn ;

turn: NAME { build_turn(reading, $1, @1); } marks ;

marks: %empty | '(' mark_list ')' ;

mark_list: mark | mark_list ',' mark ;

mark:
	'*' { build_mark(reading, (SpecMark){.kind = MARK_ONCE, .place = @1}); }
	| NAME { build_mark(reading, (SpecMark){.kind = MARK_STEP, .name = $1, .place = @1}); }
	| NAME NOTICES NUMBER
	{
		build_mark(reading, (SpecMark){.kind = MARK_NOTICES, .name = $1, .notices = $3, .place = @1});
	}
	;

%%

static void
yyerror(const SpecPlace *place, yyscan_t scanner, Reading *reading, const char *message)
{
	(void) scanner;
	build_refuse(reading, *place, message, NULL);
}

bool
build_parse(Reading *reading, const char *text, size_t length)
{
	yyscan_t scanner;
	YY_BUFFER_STATE buffer;
	bool parsed;

	if (spec_yylex_init_extra(reading, &scanner) != 0 ||
		(buffer = spec_yy_scan_bytes(text, (int) length, scanner)) == NULL)
	{
		abort(); /* no memory */
	}
	parsed = spec_yyparse(scanner, reading) == 0;
	spec_yy_delete_buffer(buffer, scanner);
	spec_yylex_destroy(scanner);
	return parsed;
}
