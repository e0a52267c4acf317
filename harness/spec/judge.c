#include "judge.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_SHOWN 5

struct Judge
{
	const Spec *spec;
	const char *path;
	char *conninfo;
	int64_t limit_ms;
	Session *session;
	Holding *holdings;
};


/* --- life --- */

static bool
connect(Judge *judge)
{
	char *limit = string_format("SET lock_timeout = %" PRId64, judge->limit_ms);

	session_close(judge->session);
	judge->session = session_open(judge->conninfo, "counterproof judge");
	if (judge->session != NULL && !session_execute(judge->session, limit))
	{
		session_close(judge->session);
		judge->session = NULL;
	}
	free(limit);
	return judge->session != NULL;
}

Judge *
judge_open(const Spec *spec, const char *path, const char *conninfo, int64_t limit_ms)
{
	Judge *judge = memory_get(sizeof(*judge));

	*judge = (Judge){.spec = spec,
					 .path = path,
					 .conninfo = string_copy(conninfo),
					 .limit_ms = limit_ms,
					 .holdings = memory_get(sizeof(Holding) * ((size_t) spec->invariant_count + 1))};
	if (!connect(judge))
	{
		judge_close(judge);
		return NULL;
	}
	return judge;
}

void
judge_close(Judge *judge)
{
	if (judge == NULL)
	{
		return;
	}
	for (int i = 0; i < judge->spec->invariant_count; i++)
	{
		text_free(&judge->holdings[i].rows);
	}
	session_close(judge->session);
	free(judge->holdings);
	free(judge->conninfo);
	free(judge);
}

void
judge_forget(Judge *judge)
{
	for (int i = 0; i < judge->spec->invariant_count; i++)
	{
		judge->holdings[i].violated = false;
		text_clear(&judge->holdings[i].rows);
	}
}

const Holding *
judge_holding(const Judge *judge, int invariant)
{
	return &judge->holdings[invariant];
}


/* --- asking --- */

/* A restart of the server has taken the connection along: then once more. */
static bool
ask(Judge *judge, const char *what, const char *sql, SpecPlace place, SqlResult **result)
{
	SqlStatus status = session_try(judge->session, result, sql, NO_ARGS);

	if (status == SQL_LOST || status == SQL_UNKNOWN)
	{
		if (!connect(judge))
		{
			return false;
		}
		status = session_try(judge->session, result, sql, NO_ARGS);
	}
	if (status != SQL_OK)
	{
		report_error("%s:%d:%d: %s cannot be asked: %s", judge->path, place.line, place.column, what,
					 session_error(judge->session)->message);
	}
	return status == SQL_OK;
}

static void
show_rows(const SqlResult *result, Text *text)
{
	int rows = sql_rows(result);

	for (int row = 0; row < rows && row < ROWS_SHOWN; row++)
	{
		text_append(text, "%s(", row > 0 ? " " : "");
		for (int i = 0; i < sql_columns(result); i++)
		{
			text_append(text, "%s%s=%s", i > 0 ? ", " : "", sql_column_name(result, i),
						sql_is_null(result, row, i) ? "NULL" : sql_text(result, row, i));
		}
		text_append(text, ")");
	}
	if (rows > ROWS_SHOWN)
	{
		text_append(text, " and %d rows more", rows - ROWS_SHOWN);
	}
}

static bool
ask_invariant(Judge *judge, const Trial *trial, int number, bool always)
{
	const SpecInvariant *invariant = judge->spec->invariants[number];
	Holding *holding = &judge->holdings[number];
	SqlResult *result = NULL;
	const char *order = text_get(&trial_record(trial)->order);
	const char *last = strrchr(order, ' ');

	if (!ask(judge, "invariant", invariant->sql, invariant->place, &result))
	{
		return false;
	}
	if (sql_rows(result) > 0)
	{
		holding->violated = true;
		show_rows(result, &holding->rows);
		text_append(&holding->rows, always ? " after %s" : "", last != NULL ? last + 1 : order);
	}
	sql_free(result);
	return true;
}

bool
judge_ask(Judge *judge, const Trial *trial, bool always)
{
	for (int i = 0; i < judge->spec->invariant_count; i++)
	{
		if (!judge->holdings[i].violated && (judge->spec->invariants[i]->always || !always) &&
			!ask_invariant(judge, trial, i, always))
		{
			return false;
		}
	}
	return true;
}

bool
judge_observe(Judge *judge, Text *state)
{
	SqlResult *result = NULL;

	text_clear(state);
	if (!ask(judge, "observe", judge->spec->observe->sql, judge->spec->observe->place, &result))
	{
		return false;
	}
	trial_append_answer(result, state);
	sql_free(result);
	return true;
}


/* --- expectations --- */

static const SpecExpect *
find_expect(const SpecPermutation *permutation, const SpecStep *step)
{
	for (int i = 0; i < permutation->expect_count; i++)
	{
		if (permutation->expects[i]->step == step && step != NULL)
		{
			return permutation->expects[i];
		}
	}
	return NULL;
}

/* What the step got the first time, which a retry does not change. NULL: it was not run. */
static const Deed *
find_deed(const Trial *trial, const SpecStep *step)
{
	const Part *part = &trial_record(trial)->parts[step->session];

	for (int i = 0; i < part->deed_count; i++)
	{
		if (part->deeds[i].step == step)
		{
			return &part->deeds[i];
		}
	}
	return NULL;
}

static void
miss_errors(const SpecPermutation *permutation, const Trial *trial, Text *missed)
{
	const Record *record = trial_record(trial);

	for (int i = 0; i < trial_spec(trial)->session_count; i++)
	{
		for (int k = 0; k < record->parts[i].deed_count; k++)
		{
			const Deed *deed = &record->parts[i].deeds[k];

			if (deed->sqlstate[0] != '\0' && strcmp(deed->sqlstate, "25P02") != 0 &&
				find_expect(permutation, deed->step) == NULL)
			{
				text_append(missed, "expected no error at %s, got %s\n", deed->step->name, deed->sqlstate);
			}
		}
	}
}

void
judge_expects(const SpecPermutation *permutation, const Trial *trial, Text *missed)
{
	for (int i = 0; i < permutation->expect_count; i++)
	{
		const SpecExpect *expect = permutation->expects[i];
		const Deed *deed = expect->step != NULL ? find_deed(trial, expect->step) : NULL;

		if (expect->step != NULL && (deed == NULL || strcmp(deed->sqlstate, expect->sqlstate) != 0))
		{
			text_append(missed, "expected %s at %s, got %s\n", expect->sqlstate, expect->name,
						deed == NULL                ? "no run of it"
						: deed->sqlstate[0] == '\0' ? "no error"
													: deed->sqlstate);
		}
	}
	if (permutation->expect_count > 0)
	{
		miss_errors(permutation, trial, missed);
	}
}
