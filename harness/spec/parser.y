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

/* The complaint was made. */
#define CHECK(built) \
	do \
	{ \
		if (!(built)) \
		{ \
			YYABORT; \
		} \
	} while (0)

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
%token INVARIANT "invariant" OBSERVE "observe" EXPECT "expect" RETRY "retry" FAULT "fault" EXPLORE "explore"
%token <string> NAME "name"
%token <string> CODE "SQLSTATE"
%token <string> BLOCK "{"
%token <number> NUMBER "number"
%type <block> setup teardown
%type <string> sqlstate
%type <number> reads

%%

file: setups judgings last sessions permutations ;

last: %empty | TEARDOWN BLOCK { reading->spec->teardown = build_block(reading, $2, @2); } judgings ;

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
	judgings
	;

steps: step | steps step ;

step: STEP NAME reads BLOCK { build_step(reading, $2, $4, @2)->reads = $3 != 0; } ;

reads: %empty { $$ = 0; } | NAME { CHECK(build_reads(reading, $1, @1)); $$ = 1; } ;

permutations: %empty | permutations permutation ;

permutation: PERMUTATION { build_permutation(reading, @1); } turns judgings ;

judgings: %empty | judgings judging ;

judging:
	INVARIANT NAME BLOCK { CHECK(build_invariant(reading, $2, NULL, $3, @2, @2)); }
	| INVARIANT NAME NAME BLOCK { CHECK(build_invariant(reading, $2, $3, $4, @2, @3)); }
	| OBSERVE BLOCK { CHECK(build_observe(reading, build_block(reading, $2, @2), @1)); }
	| EXPECT NAME { CHECK(build_expect_none(reading, $2, @2)); }
	| EXPECT sqlstate NAME NAME { CHECK(build_expect(reading, $2, $3, $4, @2, @3)); }
	| RETRY NAME NUMBER { CHECK(build_retry(reading, $2, $3, @2, @3)); }
	| FAULT NAME NAME NAME { CHECK(build_fault(reading, $2, $3, $4, @2, @3)); }
	| EXPLORE NAME { CHECK(build_explore(reading, $2, -1, @2)); }
	| EXPLORE NAME NUMBER { CHECK(build_explore(reading, $2, $3, @2)); }
	;

sqlstate: NUMBER { $$ = build_sqlstate(reading, $1); } | CODE | NAME ;

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
