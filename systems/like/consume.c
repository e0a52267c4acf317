/* The consumer: numbering, pulling numbers, delivering them in batches, draining. */
#include "like_private.h"
#include "point.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct
{
	const int64_t *seqs;
	size_t count;
	int batch;
	int64_t lowest, highest; /* for the points */
	LikeTotals *totals;      /* out */
} Delivery;

static void
reach(const char *point, const Delivery *delivery)
{
	point_reach(point, "batch=%d seq=%" PRId64 "..%" PRId64, delivery->batch, delivery->lowest, delivery->highest);
}

static SqlStatus
deliver_body(Session *session, void *context)
{
	Delivery *delivery = context;
	Text list = {0};
	SqlResult *rows;
	SqlStatus status;

	text_append_int64_array(&list, delivery->seqs, delivery->count);
	status = session_try(session, &rows, "SELECT applied, covered, dup, watermark FROM like_consume($1)",
						 ARGS(arg_text(text_get(&list))));
	text_free(&list);
	if (status != SQL_OK)
	{
		return status;
	}
	*delivery->totals = (LikeTotals){.applied = sql_int(rows, 0, 0),
									 .covered = sql_int(rows, 0, 1),
									 .dup = sql_int(rows, 0, 2),
									 .watermark = sql_int(rows, 0, 3)};
	sql_free(rows);
	reach("consumer.before_commit", delivery);
	return SQL_OK;
}

SqlStatus
like_try_deliver(Session *session, const int64_t *seqs, size_t count, int batch, LikeTotals *totals)
{
	Delivery delivery = {.seqs = seqs, .count = count, .batch = batch, .totals = totals};
	SqlStatus status;

	for (size_t i = 0; i < count; i++)
	{
		delivery.lowest = i == 0 || seqs[i] < delivery.lowest ? seqs[i] : delivery.lowest;
		delivery.highest = i == 0 || seqs[i] > delivery.highest ? seqs[i] : delivery.highest;
	}
	status = session_transaction(session, READ_COMMITTED, deliver_body, &delivery);
	if (status == SQL_OK)
	{
		reach("consumer.after_commit", &delivery);
	}
	return status;
}

bool
like_deliver(Session *session, const int64_t *seqs, size_t count, int batch, LikeTotals *totals)
{
	SqlStatus status = like_try_deliver(session, seqs, count, batch, totals);

	if (status != SQL_OK)
	{
		char *what = string_format("cannot deliver batch %d of %zu events", batch, count);

		like_report(session, status, what);
		free(what);
		return false;
	}
	return true;
}

/* The numbers of "{1,2,3}", which the server wrote. */
static void
list_parse(const char *list, int64_t **seqs, size_t *count)
{
	size_t capacity = 1;
	char *next;

	*count = 0;
	for (const char *p = list; *p != '\0'; p++)
	{
		capacity += *p == ',';
	}
	*seqs = memory_get(capacity * sizeof(**seqs));
	for (const char *p = list + 1; *p >= '0' && *p <= '9'; p = *next == ',' ? next + 1 : next)
	{
		(*seqs)[(*count)++] = strtoll(p, &next, 10);
	}
}

bool
like_number(Session *session, int64_t most, int64_t *numbered)
{
	return session_query_int(session, numbered, "SELECT like_number($1)", ARGS(arg_int(most)));
}

bool
like_pull(Session *session, int64_t after, int64_t most, int64_t **seqs, size_t *count)
{
	SqlResult *rows;

	if (!session_query(session, &rows, "SELECT like_pull($1, $2)", ARGS(arg_int(after), arg_int(most))))
	{
		return false;
	}
	list_parse(sql_text(rows, 0, 0), seqs, count);
	sql_free(rows);
	return true;
}

bool
like_watermark(Session *session, int64_t *watermark)
{
	return session_query_int(session, watermark, "SELECT like_watermark()", NO_ARGS);
}

bool
like_end_of_log(Session *session, int64_t after, int64_t *watermark, bool *behind)
{
	SqlResult *rows;
	int64_t before = *watermark;

	if (!session_query(session, &rows, "SELECT like_watermark(), like_left_behind($1)", ARGS(arg_int(after))))
	{
		return false;
	}
	*watermark = sql_int(rows, 0, 0);
	*behind = sql_bool(rows, 0, 1) && *watermark != before;
	sql_free(rows);
	return true;
}

bool
like_drain_from(Session *session, int64_t after, int64_t batch_size, LikeTotals *totals)
{
	int64_t watermark = -1;
	int64_t first = 0; /* of the batch before */

	for (int batch = 1;; batch++)
	{
		LikeTotals delivered;
		int64_t *seqs;
		size_t count;
		bool ok;

		if (!like_pull(session, after, batch_size, &seqs, &count))
		{
			return false;
		}
		if (count == 0)
		{
			bool behind;

			free(seqs);
			if (!like_end_of_log(session, after, &watermark, &behind))
			{
				return false;
			}
			totals->watermark = watermark;
			if (!behind)
			{
				return true;
			}
			after = 0;
			first = 0;
			continue;
		}
		if (seqs[0] == first)
		{
			report_error("event %" PRId64 " was delivered, and is pulled again", first);
			free(seqs);
			return false;
		}
		first = seqs[0];
		/* After the last number seen, not after the watermark: a hole in the outbox must not hold the drain for ever. */
		after = seqs[count - 1];
		ok = like_deliver(session, seqs, count, batch, &delivered);
		free(seqs);
		if (!ok)
		{
			return false;
		}
		like_totals_add(totals, &delivered);
	}
}

bool
like_drain(Session *session, int64_t batch_size, LikeTotals *totals)
{
	int64_t watermark;

	return like_watermark(session, &watermark) && like_drain_from(session, watermark, batch_size, totals);
}

void
like_totals_add(LikeTotals *sum, const LikeTotals *batch)
{
	sum->applied += batch->applied;
	sum->covered += batch->covered;
	sum->dup += batch->dup;
	sum->watermark = batch->watermark;
}

void
like_totals_describe(const LikeTotals *totals, Text *text)
{
	text_append(text, "applied=%" PRId64 " covered=%" PRId64 " dup=%" PRId64 " watermark=%" PRId64, totals->applied,
				totals->covered, totals->dup, totals->watermark);
}
