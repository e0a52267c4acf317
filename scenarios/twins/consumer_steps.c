#include "consumer_steps.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "point.h"
#include "wrong_steps.h"

/* A batch on its way through one or two transactions. */
typedef struct
{
	const int64_t *seqs;
	size_t count;
	int batch;
	char *list;    /* of all its numbers */
	char *to_add;  /* M08: of those that its first transaction registered */
	int64_t known; /* M10: from the file */
	LikeTotals *totals;
} Delivery;

static void
reach(const char *point, const Delivery *delivery)
{
	int64_t lowest = delivery->count > 0 ? delivery->seqs[0] : 0, highest = lowest;

	for (size_t i = 1; i < delivery->count; i++)
	{
		lowest = delivery->seqs[i] < lowest ? delivery->seqs[i] : lowest;
		highest = delivery->seqs[i] > highest ? delivery->seqs[i] : highest;
	}
	point_reach(point, "batch=%d seq=%" PRId64 "..%" PRId64, delivery->batch, lowest, highest);
}

static char *
list_of(const int64_t *seqs, size_t count)
{
	Text list = {0};
	char *copy;

	text_append_int64_array(&list, seqs, count);
	copy = string_copy(text_get(&list));
	text_free(&list);
	return copy;
}

static void
totals_take(LikeTotals *totals, const SqlResult *rows)
{
	*totals = (LikeTotals){.applied = sql_int(rows, 0, 0),
						   .covered = sql_int(rows, 0, 1),
						   .dup = sql_int(rows, 0, 2),
						   .watermark = sql_int(rows, 0, 3)};
}

/* One transaction after the other; the last of them has the consumer's points around its commit. */
static bool
deliver(Session *session, Delivery *delivery, const TransactionBody *bodies)
{
	SqlStatus status = SQL_OK;

	delivery->list = list_of(delivery->seqs, delivery->count);
	for (; status == SQL_OK && *bodies != NULL; bodies++)
	{
		status = session_transaction(session, READ_COMMITTED, *bodies, delivery);
	}
	free(delivery->list);
	free(delivery->to_add);
	if (status != SQL_OK)
	{
		report_error("cannot deliver batch %d of %zu events: %s %s: %s", delivery->batch, delivery->count,
					 sql_status_name(status), session_error(session)->sqlstate, session_error(session)->message);
		return false;
	}
	reach("consumer.after_commit", delivery);
	return true;
}


/* --- M08: registered in a transaction, added in the next --- */

static SqlStatus
m08_register(Session *session, void *context)
{
	Delivery *delivery = context;
	SqlResult *rows;
	SqlStatus status =
		session_try(session, &rows, "SELECT applied, covered, dup, watermark, to_add FROM like_register($1)",
					ARGS(arg_text(delivery->list)));

	if (status == SQL_OK)
	{
		totals_take(delivery->totals, rows);
		free(delivery->to_add);
		delivery->to_add = string_copy(sql_text(rows, 0, 4));
		sql_free(rows);
	}
	return status;
}

static SqlStatus
m08_add(Session *session, void *context)
{
	const Delivery *delivery = context;
	SqlStatus status = session_try(session, NULL, "SELECT FROM like_add($1)", ARGS(arg_text(delivery->to_add)));

	if (status == SQL_OK)
	{
		reach("consumer.before_commit", delivery);
	}
	return status;
}

static bool
m08_deliver(Session *session, const int64_t *seqs, size_t count, int batch, LikeTotals *totals)
{
	static const TransactionBody bodies[] = {m08_register, m08_add, NULL};

	return deliver(session, &(Delivery){.seqs = seqs, .count = count, .batch = batch, .totals = totals}, bodies);
}


/* --- M09: added in a transaction, registered in the next --- */

static SqlStatus
m09_add(Session *session, void *context)
{
	const Delivery *delivery = context;

	return session_try(session, NULL, "SELECT FROM like_add($1)", ARGS(arg_text(delivery->list)));
}

static SqlStatus
m09_register(Session *session, void *context)
{
	Delivery *delivery = context;
	SqlResult *rows;
	SqlStatus status = session_try(session, &rows, "SELECT applied, covered, dup, watermark FROM like_register($1)",
								   ARGS(arg_text(delivery->list)));

	if (status == SQL_OK)
	{
		totals_take(delivery->totals, rows);
		sql_free(rows);
		reach("consumer.before_commit", delivery);
	}
	return status;
}

static bool
m09_deliver(Session *session, const int64_t *seqs, size_t count, int batch, LikeTotals *totals)
{
	static const TransactionBody bodies[] = {m09_add, m09_register, NULL};

	return deliver(session, &(Delivery){.seqs = seqs, .count = count, .batch = batch, .totals = totals}, bodies);
}


/* --- M10: what was added is known by a file beside the offset file --- */

static SqlStatus
m10_consume(Session *session, void *context)
{
	Delivery *delivery = context;
	SqlResult *rows;
	SqlStatus status = session_try(session, &rows, "SELECT applied, covered, dup, watermark FROM like_consume($1, $2)",
								   ARGS(arg_text(delivery->list), arg_int(delivery->known)));

	if (status == SQL_OK)
	{
		totals_take(delivery->totals, rows);
		sql_free(rows);
		reach("consumer.before_commit", delivery);
	}
	return status;
}

static bool
deliver_known(ConsumerBatch *batch, int64_t known)
{
	static const TransactionBody bodies[] = {m10_consume, NULL};

	return deliver(batch->session,
				   &(Delivery){.seqs = batch->seqs,
							   .count = batch->count,
							   .batch = batch->number,
							   .known = known,
							   .totals = &batch->totals},
				   bodies);
}

static bool
known_open(const ConsumerBatch *batch, OffsetFile *known)
{
	char *path = string_format("%s.known", batch->file->path);
	bool ok = offset_file_open(known, path);

	free(path);
	return ok;
}

static bool
m10a_file_then_deliver(ConsumerBatch *batch)
{
	OffsetFile known;
	bool ok = known_open(batch, &known);
	int64_t before = known.offset;

	ok = ok && offset_file_write(&known, batch->seqs[batch->count - 1]) && deliver_known(batch, before);
	offset_file_close(&known);
	return ok;
}

static bool
m10b_deliver_then_file(ConsumerBatch *batch)
{
	OffsetFile known;
	bool ok = known_open(batch, &known);

	ok = ok && deliver_known(batch, known.offset) && offset_file_write(&known, batch->seqs[batch->count - 1]);
	offset_file_close(&known);
	return ok;
}


/* --- M15: 23505 is taken for "known", and the transaction goes on --- */

static SqlStatus
m15_apply(Session *session, int64_t seq, LikeTotals *totals)
{
	SqlResult *rows;
	SqlStatus status = session_try(session, &rows, "SELECT like_apply($1)", ARGS(arg_int(seq)));

	if (status == SQL_OK)
	{
		bool covered = strcmp(sql_text(rows, 0, 0), "COVERED") == 0;

		totals->covered += covered;
		totals->applied += !covered;
		sql_free(rows);
	}
	else if (status == SQL_ERROR && strcmp(session_error(session)->sqlstate, "23505") == 0)
	{
		totals->dup++;
		return SQL_OK;
	}
	return status;
}

static SqlStatus
m15_consume(Session *session, void *context)
{
	Delivery *delivery = context;
	LikeTotals totals = {0};
	SqlResult *rows;
	SqlStatus status = session_try(session, NULL, "SELECT FROM counter_watermark FOR UPDATE", NO_ARGS);

	for (size_t i = 0; status == SQL_OK && i < delivery->count; i++)
	{
		status = m15_apply(session, delivery->seqs[i], &totals);
	}
	if (status != SQL_OK)
	{
		return status;
	}
	status = session_try(session, &rows, "SELECT watermark FROM like_advance()", NO_ARGS);
	if (status == SQL_OK)
	{
		totals.watermark = sql_int(rows, 0, 0);
		sql_free(rows);
		*delivery->totals = totals;
		reach("consumer.before_commit", delivery);
	}
	return status;
}

static bool
m15_deliver(Session *session, const int64_t *seqs, size_t count, int batch, LikeTotals *totals)
{
	static const TransactionBody bodies[] = {m15_consume, NULL};

	return deliver(session, &(Delivery){.seqs = seqs, .count = count, .batch = batch, .totals = totals}, bodies);
}


/* --- the lists --- */

static bool
m08_step(ConsumerBatch *batch)
{
	return m08_deliver(batch->session, batch->seqs, batch->count, batch->number, &batch->totals);
}

static bool
m09_step(ConsumerBatch *batch)
{
	return m09_deliver(batch->session, batch->seqs, batch->count, batch->number, &batch->totals);
}

static bool
m15_step(ConsumerBatch *batch)
{
	return m15_deliver(batch->session, batch->seqs, batch->count, batch->number, &batch->totals);
}

static const struct
{
	const char *id;
	ConsumerStep steps[3];
} lists[] = {
	{"M08", {m08_step, consumer_write_offset, NULL}},
	{"M09", {m09_step, consumer_write_offset, NULL}},
	{"M10a", {m10a_file_then_deliver, consumer_write_offset, NULL}},
	{"M10b", {m10b_deliver_then_file, consumer_write_offset, NULL}},
	{"M11", {consumer_write_offset, consumer_deliver, NULL}},
	{"M15", {m15_step, consumer_write_offset, NULL}},
};

const ConsumerStep *
twin_consumer(const char *id)
{
	for (size_t i = 0; i < LENGTH_OF(lists); i++)
	{
		if (strcmp(lists[i].id, id) == 0)
		{
			return lists[i].steps;
		}
	}
	return NULL;
}

#define PROGRAM(id)                                                                                                    \
	(const char *const[])                                                                                              \
	{                                                                                                                  \
		"like-consumer-twin", "--twin", id, NULL                                                                       \
	}

/* X01: what a batch could not apply is written down when the batch has committed. */
static bool
deliver_then_park(Session *session, const int64_t *seqs, size_t count, int batch, LikeTotals *totals)
{
	return like_deliver(session, seqs, count, batch, totals) &&
		   session_query(session, NULL, "SELECT like_park_rest()", NO_ARGS);
}

const ClientSteps registered_first_steps = {.deliver = m08_deliver, .consumer = PROGRAM("M08")};
const ClientSteps added_first_steps = {.deliver = m09_deliver, .consumer = PROGRAM("M09")};
const ClientSteps file_first_steps = {.consumer = PROGRAM("M10a")};
const ClientSteps file_last_steps = {.consumer = PROGRAM("M10b")};
const ClientSteps offset_first_steps = {.consumer = PROGRAM("M11")};
const ClientSteps on_after_23505_steps = {.deliver = m15_deliver, .consumer = PROGRAM("M15")};
const ClientSteps park_apart_steps = {.deliver = deliver_then_park};
