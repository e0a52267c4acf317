#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab.h"
#include "restated.h"
#include "trace_lab.h"

/* Enough for a request that waits for a lock which the case is about to release. */
#define ANSWER_MS 10000
/* Enough for a few hundred requests of each of a handful of workers on a loaded machine. */
#define WORKERS_MS 30000
/* Enough for some hundred requests to be answered. */
#define COUNTER_MS 15000
#define DRAIN_BATCH 1000
#define NUMBER_BATCH 1000

#define UNKNOWN_ITEM_SQLSTATE "23503"

void
item_label(int64_t item, char label[LABEL_SIZE])
{
	(void) snprintf(label, LABEL_SIZE, "item-lab-%02d", (int) item);
}

Session *
like_client(Scene *scene, const char *name)
{
	Session *session = scene_session(scene, name);

	require(scene, steps()->prepare(session));
	return session;
}

static ClientSteps twin_does;
static const ClientSteps *chosen = &right_steps; /* once a system was made, with a trace of them */

const ClientSteps *
steps(void)
{
	return chosen;
}

static const LikeDesign *chosen_design; /* NULL: no like system has been made in this case */

const LikeDesign *
design(void)
{
	return chosen_design != NULL ? chosen_design : like_design_find(NULL);
}

void
load_twin(Scene *scene, Session *session, const char *system)
{
	const char *variant = scene_variant(scene);
	const Twin *twin = variant == NULL ? NULL : twin_find(variant);
	char *folder;
	size_t loaded;

	if (twin == NULL)
	{
		chosen = traced_steps(&right_steps);
		return;
	}
	twin_does = twin_steps(twin);
	chosen = traced_steps(&twin_does);
	note(scene, "twin %s: %s", twin->id, twin->wrong);
	folder = string_format("mutants/%s", twin->id);
	require(scene, like_design_load_over(session, design(), scene_sql(scene, system), folder, &loaded));
	free(folder);
}

void
load_twin_file(Scene *scene, Session *session, const char *path)
{
	const char *file = strchr(path, '/');
	char *system, *name, *own;

	if (scene_variant(scene) == NULL || file == NULL)
	{
		return;
	}
	system = string_format("%.*s", (int) (file - path), path);
	name = string_format("mutants/%s%s", scene_variant(scene), file);
	own = like_design_file(design(), scene_sql(scene, system), name);
	if (own != NULL)
	{
		require(scene, session_execute_file(session, own));
	}
	free(system);
	free(name);
	free(own);
}

static void
load_events(Scene *scene, Session *session)
{
	char *file =
		design()->own_events ? string_format("lab/%s/events.sql", design()->name) : string_copy("lab/events.sql");

	require(scene, session_execute_file(session, scene_sql(scene, file)));
	free(file);
}

void
load_part(Scene *scene, Session *session, const char *part)
{
	const char *sql = scene_sql(scene, "like");
	char *folder = string_format("parts/%s", part);
	char *twin = string_format("parts/%s/mutants/%s", part, scene_variant(scene) == NULL ? "" : scene_variant(scene));
	size_t loaded;

	require(scene, like_design_load_over(session, design(), sql, folder, &loaded));
	if (loaded == 0)
	{
		scene_broken(scene, "there is no %s in %s", folder, sql);
	}
	if (scene_variant(scene) != NULL)
	{
		require(scene, like_design_load_over(session, design(), sql, twin, &loaded));
	}
	free(folder);
	free(twin);
}

Session *
like_lab(Scene *scene, int items)
{
	return like_lab_of(scene, like_design_find(scene_design(scene)), items);
}

Session *
like_lab_of(Scene *scene, const LikeDesign *of, int items)
{
	Session *session;
	char label[LABEL_SIZE];

	chosen_design = of;
	restate(scene, of);
	session = scene_session(scene, "lab");
	require(scene, like_design_create(session, of, scene_sql(scene, "like")));
	load_events(scene, session);
	load_twin(scene, session, "like");
	for (int item = 1; item <= items; item++)
	{
		item_label(item, label);
		require(scene, like_add_item(session, item, label));
	}
	require(scene, steps()->prepare(session));
	return session;
}

int64_t
number_of(Scene *scene, Session *session, const char *sql, const SqlArg *args, int count)
{
	int64_t value = 0;

	require(scene, session_query_int(session, &value, sql, args, count));
	return value;
}

void
check_query(Scene *scene, Session *session, const char *sql, const SqlArg *args, int count, const char *expected,
			const char *format, ...)
{
	SqlResult *result = NULL;
	Text what = {0};
	va_list va;

	require(scene, session_query(session, &result, sql, args, count));
	if (sql_rows(result) != 1 || sql_columns(result) != 1)
	{
		scene_broken(scene, "%d rows and %d columns instead of one value: %s", sql_rows(result), sql_columns(result),
					 sql);
	}
	va_start(va, format);
	text_append_va(&what, format, va);
	va_end(va);
	check_text(scene, sql_text(result, 0, 0), expected, "%s", text_get(&what));
	text_free(&what);
	sql_free(result);
}

int64_t
facts_of(Scene *scene, Session *session, int64_t item)
{
	return number_of(scene, session, "SELECT count(*) FROM like_fact WHERE item_id = $1 AND liked",
					 ARGS(arg_int(item)));
}

/* A sequencer that the server refused is a verdict about the system; one that lost its server is the lab's trouble. */
void
number_events(Scene *scene, Session *session)
{
	int64_t numbered = 0;

	do
	{
		if (!like_number(session, NUMBER_BATCH, &numbered))
		{
			require(scene, !session_is_lost(session));
			check_text(scene, session_error(session)->message, "", "what keeps the sequencer from numbering events");
			return;
		}
	} while (numbered > 0);
}

int64_t
last_number(Scene *scene, Session *session)
{
	number_events(scene, session);
	return number_of(scene, session, "SELECT lab_last()", NO_ARGS);
}

int64_t
to_event(Scene *scene, Session *session, int64_t number)
{
	int64_t event = number;

	require(scene, to_events(session, &event, 1));
	return event;
}

bool
to_events(Session *session, int64_t *numbers, size_t count)
{
	SqlResult *rows;
	Text list = {0};
	bool done;

	if (!design()->own_events || count == 0)
	{
		return true;
	}
	text_append_int64_array(&list, numbers, count);
	done = session_query(session, &rows, "SELECT unnest(lab_events($1))", ARGS(arg_text(text_get(&list))));
	text_free(&list);
	for (size_t i = 0; done && i < count; i++)
	{
		numbers[i] = sql_int(rows, (int) i, 0);
	}
	if (done)
	{
		sql_free(rows);
	}
	return done;
}

void
run_workers(Scene *scene, const char *name, int workers, ActorBody body, void *context)
{
	ActorGroup *group = actor_start(name, workers, body, context);

	require(scene, group != NULL);
	actor_open_gate(group);
	require(scene, actor_join(group, scene_deadline(scene, WORKERS_MS)));
}

typedef struct
{
	atomic_llong *counter;
	int64_t target;
	Deadline latest; /* done by then in any case */
} CounterWait;

static ProbeAnswer
probe_counter(void *context, Text *seen)
{
	CounterWait *wait = context;
	long long now = atomic_load(wait->counter);

	text_append(seen, "%lld of %lld", now, (long long) wait->target);
	return now >= wait->target || deadline_passed(wait->latest) ? PROBE_DONE : PROBE_AGAIN;
}

bool
await_counter(const char *what, atomic_llong *counter, int64_t target, Deadline latest)
{
	CounterWait wait = {counter, target, latest};

	return wait_until(what, deadline_in_ms(COUNTER_MS), probe_counter, &wait);
}


/* --- requests --- */

LikeResult
request_like(Scene *scene, Session *session, int64_t user, int64_t item, bool want)
{
	LikeResult result = {0};

	require(scene, steps()->set(session, user, item, want, &result));
	return result;
}

void
learn_number(Scene *scene, Session *session, int64_t user, int64_t item, LikeResult *result)
{
	if ((design()->numbers_later || design()->own_events) && result->outcome == LIKE_CHANGED)
	{
		number_events(scene, session);
		result->seq = number_of(scene, session,
								"SELECT coalesce(max(number), 0) FROM lab_event "
								"WHERE user_id = $1 AND item_id = $2 AND version = $3 AND $4::bigint IN (0, event)",
								ARGS(arg_int(user), arg_int(item), arg_int(result->version), arg_int(result->seq)));
	}
}

LikeResult
set_like(Scene *scene, Session *session, int64_t user, int64_t item, bool want)
{
	LikeResult result = request_like(scene, session, user, item, want);

	learn_number(scene, session, user, item, &result);
	return result;
}

LikeResult
set_like_within(Scene *scene, Session *session, int64_t user, int64_t item, bool want)
{
	LikeResult result = {0};

	require(scene, like_set_within(session, user, item, want, &result));
	trace_answer(session, user, item, &result, TRACE_OPEN);
	if (design()->own_events)
	{
		learn_number(scene, session, user, item, &result);
	}
	return result;
}

/* What the last request that was sent asks for, until it is answered. */
typedef struct
{
	const Session *session;
	int64_t user, item;
} Asked;

static Asked asked;

void
send_like(Scene *scene, Session *session, int64_t user, int64_t item, bool want)
{
	/* A statement before it, by which check_waits() tells it from the last request. */
	require(scene, session_execute(session, "SELECT"));
	asked = (Asked){session, user, item};
	trace_request(session, user, item, want);
	require(scene, session_send(session, "SELECT changed, liked, version, seq FROM like_set($1, $2, $3)",
								ARGS(arg_int(user), arg_int(item), arg_bool(want))));
}

static void
trace_awaited(const Session *session, const LikeResult *answer)
{
	if (asked.session == session)
	{
		trace_answer(session, asked.user, asked.item, answer, TRACE_DONE);
	}
}

LikeResult
await_like(Scene *scene, Session *session)
{
	LikeResult answer = {0};
	SqlResult *result = NULL;
	SqlStatus status = session_await(session, &result, scene_deadline(scene, ANSWER_MS));

	if (status == SQL_ERROR)
	{
		answer.outcome = LIKE_REJECTED;
		memcpy(answer.sqlstate, session_error(session)->sqlstate, sizeof(answer.sqlstate));
		trace_awaited(session, &answer);
		return answer;
	}
	if (status != SQL_OK)
	{
		scene_broken(scene, "a request that had been waiting ended as %s", sql_status_name(status));
	}
	answer.outcome = sql_bool(result, 0, 0) ? LIKE_CHANGED : LIKE_NOOP;
	answer.liked = sql_bool(result, 0, 1);
	answer.version = sql_int(result, 0, 2);
	answer.seq = sql_int(result, 0, 3);
	sql_free(result);
	trace_awaited(session, &answer);
	if (asked.session == session)
	{
		learn_number(scene, session, asked.user, asked.item, &answer);
	}
	return answer;
}

/* How many locks the session is seen waiting for, 0 or 1, once what it was sent is over or waits. */
static int64_t
locks_awaited(Scene *scene, Session *observer, const Session *session)
{
	SqlArg pid = arg_int(session_backend_pid(session));

	/* Until what was sent arrives, the server shows the statement before it; then it runs, waits, or is over. */
	scene_await_int(scene, observer, 1,
					"SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND query LIKE 'SELECT%FROM like_%' "
					"AND (state <> 'active' OR wait_event_type = 'Lock')",
					ARGS(pid));
	return number_of(scene, observer, "SELECT count(DISTINCT pid) FROM pg_locks WHERE pid = $1 AND NOT granted",
					 ARGS(pid));
}

bool
check_goes_on(Scene *scene, Session *observer, Session *session, const char *what)
{
	return CHECK_EQ(scene, locks_awaited(scene, observer, session), 0, "%s", what);
}

void
check_waits(Scene *scene, Session *observer, Session *waiter, const char *format, ...)
{
	Text what = {0};
	va_list args;
	int64_t awaited = locks_awaited(scene, observer, waiter);

	va_start(args, format);
	text_append_va(&what, format, args);
	va_end(args);
	trace_tell(trace_client(session_name(waiter)), "wait", "%s", text_get(&what));
	CHECK_EQ(scene, awaited, 1, "%s", text_get(&what));
	text_free(&what);
}

void
check_answer(Scene *scene, const LikeResult *result, const char *expected, const char *format, ...)
{
	Text actual = {0}, what = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&what, format, args);
	va_end(args);
	like_describe(result, &actual);
	check_text(scene, text_get(&actual), expected, "%s", text_get(&what));
	text_free(&actual);
	text_free(&what);
}

static OpOutcome
op_outcome(LikeOutcome outcome)
{
	switch (outcome)
	{
		case LIKE_CHANGED:
		case LIKE_NOOP:
			return OP_OK;
		case LIKE_REJECTED:
			return OP_FAILED;
		case LIKE_UNKNOWN:
			return OP_UNKNOWN;
		case LIKE_UNSET:
			break;
	}
	return OP_OPEN;
}

bool
recorded_set(History *history, int worker, Session *session, int64_t user, int64_t item, bool want, LikeResult *result)
{
	HistoryOp op = {.worker = worker, .key = {user, item}, .want = want};

	if (!history_begin(history, &op))
	{
		return false;
	}
	/* A request that the lab could not send stays open on record, which the judge takes for unknown. */
	if (!steps()->set(session, user, item, want, result))
	{
		return false;
	}
	op.outcome = op_outcome(result->outcome);
	op.changed = result->outcome == LIKE_CHANGED || (result->outcome == LIKE_UNKNOWN && result->changed);
	op.state = result->liked;
	op.version = result->version;
	op.number = result->seq;
	op.xid = result->xid;
	memcpy(op.sqlstate, result->sqlstate, sizeof(op.sqlstate));
	return history_end(history, &op);
}


/* --- the tally --- */

void
tally_add(LikeTally *tally, const LikeResult *result)
{
	tally->requests++;
	tally->changed += result->outcome == LIKE_CHANGED;
	tally->noop += result->outcome == LIKE_NOOP;
	tally->rejected += result->outcome == LIKE_REJECTED;
	tally->unknown += result->outcome == LIKE_UNKNOWN;
	if (result->sqlstate[0] != '\0' && strcmp(result->sqlstate, UNKNOWN_ITEM_SQLSTATE) != 0)
	{
		tally->unexpected++;
		if (tally->first_unexpected[0] == '\0')
		{
			memcpy(tally->first_unexpected, result->sqlstate, sizeof(tally->first_unexpected));
		}
	}
}

void
tally_merge(LikeTally *sum, const LikeTally *part)
{
	sum->requests += part->requests;
	sum->changed += part->changed;
	sum->noop += part->noop;
	sum->rejected += part->rejected;
	sum->unknown += part->unknown;
	sum->unexpected += part->unexpected;
	if (sum->first_unexpected[0] == '\0')
	{
		memcpy(sum->first_unexpected, part->first_unexpected, sizeof(sum->first_unexpected));
	}
}

void
check_tally(Scene *scene, const LikeTally *tally, int64_t requests)
{
	const char *first = tally->first_unexpected;

	CHECK_EQ(scene, tally->changed + tally->noop + tally->rejected, requests,
			 "every request was answered: CHANGED=%lld + NOOP=%lld + REJECTED=%lld", (long long) tally->changed,
			 (long long) tally->noop, (long long) tally->rejected);
	CHECK_EQ(scene, tally->unexpected, 0, "unexpected SQLSTATEs%s%s", first[0] == '\0' ? "" : ", the first is ", first);
	CHECK_EQ(scene, session_retries_40001() + session_retries_40p01(), 0, "retries after 40001 or 40P01 so far");
}

/* As an array of the server, of one member of each operation. */
#define APPEND_MEMBERS(text, ops, count, member)                                                                       \
	do                                                                                                                 \
	{                                                                                                                  \
		text_append(text, "{");                                                                                        \
		for (size_t i = 0; i < (count); i++)                                                                           \
		{                                                                                                              \
			text_append(text, "%s%lld", i == 0 ? "" : ",", (long long) (ops)[i].member);                               \
		}                                                                                                              \
		text_append(text, "}");                                                                                        \
	} while (false)

/* One that was not carried out, and sent again, finds the event of its repeat, which has an answer of its own. */
void
learn_numbers(Scene *scene, Session *session, HistoryOp *ops, size_t count)
{
	Text users = {0}, items = {0}, versions = {0}, events = {0};
	SqlResult *rows;

	if (!design()->numbers_later && !design()->own_events)
	{
		return;
	}
	number_events(scene, session);
	APPEND_MEMBERS(&users, ops, count, key[0]);
	APPEND_MEMBERS(&items, ops, count, key[1]);
	APPEND_MEMBERS(&versions, ops, count, version);
	APPEND_MEMBERS(&events, ops, count, number);
	require(scene,
			session_query(
				session, &rows,
				"SELECT coalesce(e.number, 0) FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) "
				"WITH ORDINALITY a (user_id, item_id, version, event, k) "
				"LEFT JOIN lab_event e ON (e.user_id, e.item_id, e.version) = (a.user_id, a.item_id, a.version) "
				"AND a.event IN (0, e.event) ORDER BY a.k",
				ARGS(arg_text(text_get(&users)), arg_text(text_get(&items)), arg_text(text_get(&versions)),
					 arg_text(text_get(&events)))));
	for (size_t i = 0; i < count; i++)
	{
		ops[i].number = ops[i].changed ? sql_int(rows, (int) i, 0) : 0;
	}
	sql_free(rows);
	text_free(&users);
	text_free(&items);
	text_free(&versions);
	text_free(&events);
}

void
judge_history(Scene *scene, const char *what)
{
	Session *session = scene_session(scene, "judge");

	judge_history_by(scene, session, what);
	scene_close_session(scene, session);
}

void
judge_history_by(Scene *scene, Session *session, const char *what)
{
	HistoryOp *ops = NULL;
	size_t count = 0;
	Judgement judgement;

	require(scene, history_read(scene_history_path(scene), &ops, &count));
	learn_numbers(scene, session, ops, count);
	judgement = oracle_judge_registers(ops, count);
	free(ops);
	check_judgement(scene, &judgement, what);
}


/* --- deliveries --- */

/* A consumer that the server refused is a verdict about the system; one that lost its server is the lab's trouble. */
static void
consumer_failed(Scene *scene, const Session *session)
{
	char reason[256];

	require(scene, !session_is_lost(session));
	notice_last_error(reason, sizeof(reason));
	check_text(scene, reason, "", "what keeps the consumer from taking a batch");
}

void
tell_watermark(Scene *scene, Session *session, LikeTotals *totals)
{
	if (design()->own_events)
	{
		require(scene, like_watermark(session, &totals->watermark));
	}
}

LikeTotals
deliver(Scene *scene, Session *session, const int64_t *numbers, size_t count)
{
	LikeTotals totals = {0};
	int64_t *seqs = memory_get((count + 1) * sizeof(*seqs));

	memcpy(seqs, numbers, count * sizeof(*seqs));
	require(scene, to_events(session, seqs, count));
	if (!steps()->deliver(session, seqs, count, 1, &totals))
	{
		consumer_failed(scene, session);
	}
	free(seqs);
	tell_watermark(scene, session, &totals);
	return totals;
}

LikeTotals
drain(Scene *scene, Session *session)
{
	LikeTotals totals = {0};

	if (!like_drain(session, DRAIN_BATCH, &totals))
	{
		consumer_failed(scene, session);
	}
	else if (totals.watermark > 0)
	{
		trace_consumed(session, &totals);
	}
	return totals;
}

void
clear_derived(Scene *scene, Session *session)
{
	require(scene, session_execute(session, "DELETE FROM processed_event; UPDATE like_count SET n = 0, base_seq = 0; "
											"SELECT like_watermark_reset()"));
	trace_forget(session, false, "the derived side is cleared");
}

void
check_totals(Scene *scene, const LikeTotals *totals, const char *expected, const char *format, ...)
{
	Text actual = {0}, what = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&what, format, args);
	va_end(args);
	like_totals_describe(totals, &actual);
	check_text(scene, text_get(&actual), expected, "%s", text_get(&what));
	text_free(&actual);
	text_free(&what);
}


/* --- reading --- */

LikeCount
read_count(Scene *scene, Session *session, int64_t item, int64_t allowed_lag)
{
	LikeCount count = {0};
	bool found = false;

	require(scene, like_read_count(session, item, allowed_lag, &found, &count));
	if (!found)
	{
		scene_broken(scene, "item %lld has no count row to read", (long long) item);
	}
	return count;
}

LikeCount
check_count(Scene *scene, Session *session, int64_t item, int64_t allowed_lag, const char *expected, const char *format,
			...)
{
	LikeCount count = read_count(scene, session, item, allowed_lag);
	Text actual = {0}, what = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&what, format, args);
	va_end(args);
	text_append(&actual, "n=%lld lag=%lld pending=%lld stale=%s", (long long) count.n, (long long) count.lag,
				(long long) count.pending, count.stale ? "true" : "false");
	check_text(scene, text_get(&actual), expected, "%s", text_get(&what));
	text_free(&actual);
	text_free(&what);
	return count;
}


/* --- audits --- */

LikeWriteAudit
audit_write_side(Scene *scene, Session *session)
{
	LikeWriteAudit result = {0};
	Text fields = {0};

	require(scene, like_audit_write_side(session, &result));
	like_write_audit_describe(&result, &fields);
	audit(scene, "write-side", text_get(&fields));
	text_free(&fields);
	return result;
}

LikeReadAudit
audit_read_side(Scene *scene, Session *session)
{
	LikeReadAudit result = {0};
	Text fields = {0};

	require(scene, like_audit_read_side(session, &result));
	trace_audit(session, &result);
	like_read_audit_describe(&result, &fields);
	audit(scene, "read-side", text_get(&fields));
	text_free(&fields);
	return result;
}

void
check_write_side(Scene *scene, Session *session, const char *when)
{
	LikeWriteAudit write_side = audit_write_side(scene, session);

	CHECK(scene, like_write_side_clean(&write_side), "%s: facts and events agree, numbers have no gap", when);
}

void
check_audits_clean(Scene *scene, Session *session, const char *when)
{
	LikeReadAudit read_side;

	check_write_side(scene, session, when);
	read_side = audit_read_side(scene, session);
	CHECK(scene, like_read_side_holds(&read_side), "%s: counts plus what is pending equal the facts", when);
}

void
check_drained(Scene *scene, Session *session, const char *when)
{
	LikeReadAudit read_side = audit_read_side(scene, session);

	CHECK(scene, like_read_side_holds(&read_side), "%s: identity, bound and watermark hold", when);
	CHECK_EQ(scene, read_side.lag, 0, "%s: lag", when);
	CHECK_EQ(scene, read_side.count_mismatch_items, 0, "%s: items whose count differs from their facts", when);
}
