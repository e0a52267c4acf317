/*
 * explain: nine questions that a derived counter has to answer, each with yes, no or `not visible from here`, and how that is known.
 * Then the ways to repair, and which are right for the writers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connect.h"
#include "finding.h"
#include "mode.h"

typedef enum
{
	ANSWER_YES = 1,
	ANSWER_NO,
	ANSWER_NOT_VISIBLE
} Answer;

typedef struct
{
	Session *session;
	const Finding *finding;
	const Counter *counter;
	const CounterSpec *spec;
	int number;
	bool may_update, may_insert;
	char *unwritable; /* why nobody could write the column, NULL: somebody could */
} Explanation;

static void answer(Explanation *explanation, const char *question, Answer said, const char *format, ...)
	PRINTF_LIKE(4, 5);

static void
answer(Explanation *explanation, const char *question, Answer said, const char *format, ...)
{
	static const char *const words[] = {
		[ANSWER_YES] = "yes", [ANSWER_NO] = "no", [ANSWER_NOT_VISIBLE] = "not visible from here"};
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	printf("  %d. %s: %s\n     %s\n", ++explanation->number, question, words[said], text_get(&text));
	text_free(&text);
}


/* --- the questions --- */

static void
ask_source(Explanation *explanation)
{
	const char *question = "The canonical data is named";
	const CounterSpec *spec = explanation->spec;

	if (explanation->finding->obstacle != NULL)
	{
		answer(explanation, question, ANSWER_NO, "the file names it, and it cannot be read: %s",
			   explanation->finding->obstacle);
	}
	else if (spec->truth != NULL)
	{
		answer(explanation, question, ANSWER_YES, "the file's truth; the server has run it");
	}
	else
	{
		answer(explanation, question, ANSWER_YES, "%s of the rows of %s%s%s; the server has run it",
			   spec->measure != NULL ? spec->measure : "count(*)", explanation->counter->source.quoted,
			   spec->where != NULL ? " where " : "", spec->where != NULL ? spec->where : "");
	}
}

/* `Seq Scan on public.media m`, and not `on public.media_usages`. */
static bool
line_scans(const char *line, const char *table)
{
	const char *at = strstr(line, " on ");

	return at != NULL && strncmp(at + 4, table, strlen(table)) == 0 && strchr(" ", at[4 + strlen(table)]) != NULL;
}

static bool
truth_reads_target(Explanation *explanation, bool *known)
{
	Text sql = {0};
	SqlResult *result = NULL;
	bool found = false;

	text_append(&sql, "EXPLAIN (VERBOSE, COSTS OFF)\n");
	counter_append_truth(&sql, explanation->counter, (CounterKeys){.kind = KEYS_ALL});
	*known = counters_begin_reading(explanation->session) == SQL_OK &&
			 session_try(explanation->session, &result, text_get(&sql), NO_ARGS) == SQL_OK;
	for (int row = 0; *known && row < sql_rows(result); row++)
	{
		found = found || line_scans(sql_text(result, row, 0), explanation->counter->target.quoted);
	}
	session_rollback(explanation->session);
	sql_free(result);
	text_free(&sql);
	return found;
}

static void
ask_recount(Explanation *explanation)
{
	const char *question = "It can be recounted without its old value";
	bool known = false;
	bool reads = explanation->finding->obstacle == NULL && truth_reads_target(explanation, &known);

	if (!known)
	{
		answer(explanation, question, ANSWER_NOT_VISIBLE, "there is no plan to look at");
	}
	else if (reads)
	{
		answer(explanation, question, ANSWER_NOT_VISIBLE,
			   "the recount reads %s, where the old value is; look whether it uses \"%s\"",
			   explanation->counter->target.quoted, explanation->spec->column);
	}
	else
	{
		answer(explanation, question, ANSWER_YES, "the plan of the recount does not read %s",
			   explanation->counter->target.quoted);
	}
}

static void
ask_kept(Explanation *explanation)
{
	const char *question = "It is kept up to date when canonical rows are created, changed and deleted";
	const Counter *counter = explanation->counter;
	Text heard = {0};
	SqlResult *result = NULL;
	int named = 0;

	if (counter->source.quoted != NULL &&
		session_try_prepared(explanation->session, &result, "counters_triggers",
							 ARGS(arg_int(counter->source.oid), arg_text(explanation->spec->column))) == SQL_OK)
	{
		for (int row = 0; row < sql_rows(result); row++)
		{
			bool names = sql_bool(result, row, 2);

			text_append(&heard, "%s%s by %s%s", row > 0 ? "; " : "", sql_text(result, row, 0), sql_text(result, row, 1),
						names ? "" : ", which does not name the column");
			named += names && strcmp(sql_text(result, row, 0), "TRUNCATE") != 0 ? 1 : 0;
		}
	}
	if (heard.length == 0)
	{
		answer(explanation, question, ANSWER_NOT_VISIBLE,
			   "no trigger of %s does it; the programs that write it would have to",
			   counter->source.quoted != NULL ? counter->source.quoted : "the tables in truth");
	}
	else
	{
		answer(explanation, question, named == 3 ? ANSWER_YES : ANSWER_NOT_VISIBLE, "triggers: %s%s", text_get(&heard),
			   named == 3 ? "; whether they do it right is what the numbers show"
						  : "; the rest is up to the programs that write");
	}
	sql_free(result);
	text_free(&heard);
}

static void
ask_filled(Explanation *explanation)
{
	const char *question = "Rows that were there before it are filled";
	const CounterTotals *totals = &explanation->finding->totals;
	int64_t wrong = totals_drifted(totals) + totals->keys[CLASS_MISSING];

	if (explanation->finding->obstacle != NULL || totals_scanned(totals) == 0)
	{
		answer(explanation, question, ANSWER_NOT_VISIBLE, "nothing could be counted");
	}
	else if (wrong == 0)
	{
		answer(explanation, question, ANSWER_YES, "all %" PRId64 " that were counted are right",
			   totals_scanned(totals));
	}
	else
	{
		answer(explanation, question, ANSWER_NO,
			   "of %" PRId64 " counted, %" PRId64 " are wrong: %" PRId64 " of them NULL, %" PRId64
			   " too small, %" PRId64 " without a row",
			   totals_scanned(totals), wrong, totals->keys[CLASS_NULL], totals->keys[CLASS_UNDER],
			   totals->keys[CLASS_MISSING]);
	}
}

/* Why this role could not repair, NULL: it could. */
static const char *
hindrance(const Explanation *explanation)
{
	return explanation->finding->obstacle != NULL                          ? "it cannot even be checked"
		   : explanation->unwritable != NULL                               ? explanation->unwritable
		   : !explanation->may_update                                      ? "this role may not UPDATE the column"
		   : explanation->spec->writers == WRITERS_UNSAID                  ? "the file does not say who its writers are"
		   : explanation->spec->parent != NULL && !explanation->may_insert ? "this role may not INSERT missing rows"
																		   : NULL;
}

static void
ask_repairs(Explanation *explanation)
{
	const char *hindered = hindrance(explanation);
	bool portions = counter_mode_default(explanation->spec->writers) != NULL;
	Answer can = hindered == NULL ? ANSWER_YES : ANSWER_NO;

	answer(explanation, "One record can be repaired, again and again", can, "%s",
		   hindered != NULL ? hindered
		   : portions       ? "counters repair --id KEY"
							: "counters repair --mode maintenance --id KEY");
	answer(explanation, "All can be repaired in portions", portions ? can : ANSWER_NO, "%s",
		   hindered != NULL ? hindered
		   : portions       ? "counters repair, a short transaction for each chunk"
							: "with these writers, maintenance alone is right: one transaction for all");
	answer(explanation, "There is a dry run, or a report of what differs",
		   explanation->finding->obstacle == NULL ? ANSWER_YES : ANSWER_NO, "%s",
		   explanation->finding->obstacle == NULL ? "counters check writes nothing; counters repair --dry-run"
												  : explanation->finding->obstacle);
	answer(
		explanation, "The repair is safe to run again", can, "%s",
		hindered != NULL
			? hindered
			: "it sets what the canonical data says, and the old value is no input; --mode relative is the exception");
}

static void
ask_concurrency(Explanation *explanation)
{
	const CounterModeRow *mode = counter_mode_default(explanation->spec->writers);
	const char *question = "What happens with concurrent writers is stated";

	if (explanation->spec->writers == WRITERS_UNSAID)
	{
		answer(explanation, question, ANSWER_NO, "the file has no `writers`");
	}
	else
	{
		answer(explanation, question, ANSWER_YES, "the file says %s; %s",
			   counter_writers_name(explanation->spec->writers),
			   mode != NULL ? mode->does : "only maintenance is right, with its writers held off");
	}
}

static void
print_modes(const CounterSpec *spec)
{
	printf("  Ways to repair with writers: %s\n", counter_writers_name(spec->writers));
	for (const CounterModeRow *row = counter_modes; row->name != NULL; row++)
	{
		const CounterModeRow *chosen = counter_mode_default(spec->writers);
		const char *verdict = spec->writers == WRITERS_UNSAID ? "unknown"
							  : !row->right[spec->writers]    ? "wrong"
							  : row == chosen                 ? "default"
															  : "right";

		printf("    %-11s %-8s %s\n", row->name, verdict, row->does);
		printf("    %-11s %-8s %s: %s\n", "", "", strcmp(verdict, "wrong") == 0 ? "why" : "costs",
			   strcmp(verdict, "wrong") == 0 ? row->wrong : row->costs);
	}
}


/* --- the whole --- */

static void
read_privileges(Explanation *explanation)
{
	SqlResult *result;

	if (explanation->counter->target.quoted != NULL && explanation->counter->column.quoted != NULL &&
		session_try_prepared(explanation->session, &result, "counters_privileges",
							 ARGS(arg_int(explanation->counter->target.oid), arg_text(explanation->spec->column))) ==
			SQL_OK)
	{
		explanation->may_update = sql_bool(result, 0, 0);
		explanation->may_insert = sql_bool(result, 0, 1);
		explanation->unwritable = sql_is_null(result, 0, 2)
									  ? NULL
									  : string_format("the column cannot be written: %s", sql_text(result, 0, 2));
		sql_free(result);
	}
}

static ExitCode
explain_one(Session *session, const CounterSpec *spec, const CountersRequest *request)
{
	Finding *finding = finding_make(session, spec, request);
	Explanation explanation = {.session = session, .finding = finding, .spec = spec};
	ExitCode code;

	if (finding == NULL)
	{
		return EXIT_CODE_BROKEN;
	}
	explanation.counter = finding->counter;
	read_privileges(&explanation);
	printf("%s\n", spec->name);
	ask_source(&explanation);
	ask_recount(&explanation);
	ask_kept(&explanation);
	ask_filled(&explanation);
	ask_repairs(&explanation);
	ask_concurrency(&explanation);
	print_modes(spec);
	fflush(stdout);
	code = finding->obstacle != NULL ? finding_code(finding) : EXIT_CODE_PASS;
	finding_free(finding);
	free(explanation.unwritable);
	return session_is_lost(session) ? EXIT_CODE_BROKEN : code;
}

static ExitCode
explain_all(Session *session, const CounterConfig *config, const CountersRequest *request)
{
	ExitCode code = EXIT_CODE_PASS;

	for (unsigned i = 0; i < config->count && !session_is_lost(session); i++)
	{
		if (counters_selected(request, &config->counters[i]))
		{
			code = counters_worse(code, explain_one(session, &config->counters[i], request));
		}
	}
	return code;
}

ExitCode
counters_explain(const CountersRequest *request)
{
	return counters_look(request, explain_all);
}
