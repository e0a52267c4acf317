#include "judge.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_SHOWN 5
#define NS_PER_MS ((int64_t) 1000000)
#define STATEMENT "counterproof_%d" /* of a question, by its number */

/* What is asked in one message, which costs one round trip however many there are. */
typedef struct
{
	char *sql;
	char *prepared;  /* the same by prepared statements */
	int *invariants; /* by their numbers; spec->invariant_count: observe */
	int count;
	SqlResult **results;
} Questions;

struct Judge
{
	const Spec *spec;
	const char *path;
	char *conninfo;
	int64_t limit_ms;
	Session *session;
	bool prepared; /* the session's statements are */
	bool prepares; /* they can be; not when that has failed once */
	Holding *holdings;
	Questions all, always, observe;
};


/* --- life --- */

/* Whoever judges changes nothing: what an invariant writes would be judged as if the sessions had written it. */
static bool
connect(Judge *judge)
{
	char *limit =
		string_format("SET lock_timeout = %" PRId64 "; SET default_transaction_read_only = on", judge->limit_ms);

	session_close(judge->session);
	judge->prepared = false;
	judge->session = session_open(judge->conninfo, "counterproof judge");
	if (judge->session != NULL && !session_execute(judge->session, limit))
	{
		session_close(judge->session);
		judge->session = NULL;
	}
	free(limit);
	return judge->session != NULL;
}

static const char *
question_sql(const Spec *spec, int number)
{
	return number < spec->invariant_count ? spec->invariants[number]->sql : spec->observe->sql;
}

static void
add_question(const Spec *spec, Questions *questions, int number)
{
	char *sql = questions->sql;
	char *prepared = questions->prepared;

	questions->sql = string_format("%s%s\n;\n", sql != NULL ? sql : "", question_sql(spec, number));
	questions->prepared = string_format("%sEXECUTE " STATEMENT ";", prepared != NULL ? prepared : "", number);
	free(sql);
	free(prepared);
	questions->invariants = memory_grow(questions->invariants, sizeof(int) * ((size_t) questions->count + 1));
	questions->results = memory_grow(questions->results, sizeof(SqlResult *) * ((size_t) questions->count + 1));
	questions->invariants[questions->count++] = number;
}

static void
questions_free(Questions *questions)
{
	free(questions->sql);
	free(questions->prepared);
	free(questions->invariants);
	free(questions->results);
}

Judge *
judge_open(const Spec *spec, const char *path, const char *conninfo, int64_t limit_ms)
{
	Judge *judge = memory_get(sizeof(*judge));

	*judge = (Judge){.spec = spec,
					 .path = path,
					 .conninfo = string_copy(conninfo),
					 .limit_ms = limit_ms,
					 .prepares = true,
					 .holdings = memory_get(sizeof(Holding) * ((size_t) spec->invariant_count + 1))};
	for (int i = 0; i < spec->invariant_count + (spec->observe != NULL ? 1 : 0); i++)
	{
		add_question(spec, &judge->all, i);
		if (i == spec->invariant_count)
		{
			add_question(spec, &judge->observe, i);
		}
		else if (spec->invariants[i]->always)
		{
			add_question(spec, &judge->always, i);
		}
	}
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
	questions_free(&judge->all);
	questions_free(&judge->always);
	questions_free(&judge->observe);
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

static void
drop_results(Questions *questions, int got)
{
	for (int i = 0; i < got && i < questions->count; i++)
	{
		sql_free(questions->results[i]);
	}
}

/* Send, and take as many answers as there are. *got: so many came; one more than there are when there were more. */
static bool
send(Judge *judge, Questions *questions, int *got)
{
	Deadline deadline = {.at_ns = time_now_ns() + judge->limit_ms * NS_PER_MS};
	SqlResult *result;

	*got = 0;
	if (!session_raw_send(judge->session, judge->prepared ? questions->prepared : questions->sql))
	{
		return false;
	}
	while ((result = session_raw_next_by(judge->session, deadline)) != NULL)
	{
		if (*got < questions->count)
		{
			questions->results[(*got)++] = result;
			continue;
		}
		*got = questions->count + 1;
		sql_free(result);
	}
	return *got > 0 && !sql_is_loss(questions->results[*got > questions->count ? 0 : *got - 1]);
}

static bool
refuse(const Judge *judge, const Questions *questions, int place, const char *why)
{
	int number = questions->invariants[place];
	bool observe = number == judge->spec->invariant_count;
	SpecPlace at = observe ? judge->spec->observe->place : judge->spec->invariants[number]->place;

	report_error("%s:%d:%d: %s%s cannot be asked: %s", judge->path, at.line, at.column,
				 observe ? "observe" : "invariant ", observe ? "" : judge->spec->invariants[number]->name, why);
	return false;
}

/* Once they have been answered; the server then need not analyse and plan them each time. Some statements cannot be. */
static void
prepare(Judge *judge)
{
	Text sql = {0};
	SqlResult *result;

	for (int i = 0; i < judge->all.count; i++)
	{
		text_append(&sql, "PREPARE " STATEMENT " AS %s\n;\n", i, question_sql(judge->spec, i));
	}
	result = session_raw_execute(judge->session, text_get(&sql));
	judge->prepared = judge->prepares = sql_kind(result) == RESULT_COMMAND;
	sql_free(result);
	text_free(&sql);
}

/* A statement that was prepared may fail because a table has other columns now: then as it is written, from now on. */
static bool
ask_prepared(Judge *judge, Questions *questions)
{
	int got;
	bool done = send(judge, questions, &got) && got == questions->count;

	for (int i = 0; done && i < got; i++)
	{
		done = sql_kind(questions->results[i]) == RESULT_ROWS;
	}
	if (!done)
	{
		drop_results(questions, got);
		judge->prepared = judge->prepares = false;
	}
	return done;
}

/* A restart of the server has taken the connection along: then once more. */
static bool
ask_written(Judge *judge, Questions *questions)
{
	int got;
	bool done = send(judge, questions, &got);

	if (!done)
	{
		drop_results(questions, got);
		if (!connect(judge))
		{
			return false;
		}
		(void) send(judge, questions, &got);
	}
	done = got == questions->count;
	for (int i = 0; i < got && i < questions->count; i++)
	{
		ResultKind kind = sql_kind(questions->results[i]);

		if (kind != RESULT_ROWS)
		{
			done = refuse(judge, questions, i,
						  kind == RESULT_ERROR ? sql_complaint(questions->results[i]).whole : "it returns no rows");
		}
	}
	if (got > questions->count)
	{
		done = refuse(judge, questions, 0, "it, or one that follows it, is more than one statement");
	}
	if (!done)
	{
		drop_results(questions, got);
	}
	return done;
}

static bool
ask(Judge *judge, Questions *questions)
{
	if (judge->prepared && ask_prepared(judge, questions))
	{
		return true;
	}
	if (!ask_written(judge, questions))
	{
		return false;
	}
	if (judge->prepares && questions == &judge->all)
	{
		prepare(judge);
	}
	return true;
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

/* What was violated before stays as it was then. */
static void
take_answers(Judge *judge, const Questions *questions, const char *after, Text *state)
{
	for (int i = 0; i < questions->count; i++)
	{
		SqlResult *result = questions->results[i];
		int number = questions->invariants[i];

		if (number == judge->spec->invariant_count)
		{
			text_clear(state);
			trial_append_answer(result, state);
		}
		else if (sql_rows(result) > 0 && !judge->holdings[number].violated)
		{
			judge->holdings[number].violated = true;
			show_rows(result, &judge->holdings[number].rows);
			text_append(&judge->holdings[number].rows, "%s%s", after != NULL ? " after " : "",
						after != NULL ? after : "");
		}
		sql_free(result);
	}
}

bool
judge_ask_always(Judge *judge, const Trial *trial)
{
	const char *order = text_get(&trial_record(trial)->order);
	const char *last = strrchr(order, ' ');

	if (judge->always.count == 0)
	{
		return true;
	}
	if (!ask(judge, &judge->always))
	{
		return false;
	}
	take_answers(judge, &judge->always, last != NULL ? last + 1 : order, NULL);
	return true;
}

bool
judge_ask_all(Judge *judge, Text *state)
{
	if (judge->all.count == 0)
	{
		return true;
	}
	if (!ask(judge, &judge->all))
	{
		return false;
	}
	take_answers(judge, &judge->all, NULL, state);
	return true;
}

bool
judge_observe(Judge *judge, Text *state)
{
	if (!ask(judge, &judge->observe))
	{
		return false;
	}
	take_answers(judge, &judge->observe, NULL, state);
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

			if (deed->sqlstate[0] != '\0' && strcmp(deed->sqlstate, FAILED_ALREADY) != 0 &&
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
