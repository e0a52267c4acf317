#include "trace_lab.h"

#include <stdio.h>
#include <string.h>

#include "lab.h"

#define SEQ "seq"
#define WATERMARK "watermark"
#define BASELINE "baseline"
#define APPLIED "applied"

#define WORD_BYTES 64
#define LOST_SQLSTATE "08006"

static ClientSteps traced;
static const ClientSteps *doing;

static TraceEvent
event_of(const Session *session, const char *kind, TraceOutcome outcome)
{
	return (TraceEvent){.actor = trace_client(session_name(session)), .kind = kind, .outcome = outcome};
}

/* Where each item has a log of its own, numbers, watermarks and baselines say nothing of other items' events. */
static void
mark_log(TraceEvent *event, TraceHow how, const char *what, int64_t from, int64_t to)
{
	if (!design()->own_events)
	{
		trace_mark(event, how, what, from, to);
	}
}

static void
tell(const TraceEvent *event, Text *text)
{
	trace_event(event, "%s", text_get(text));
	text_free(text);
}


/* --- requests --- */

void
trace_request(const Session *session, int64_t user, int64_t item, bool want)
{
	TraceEvent event = event_of(session, "begin", TRACE_DONE);

	trace_event(&event, "%s user %lld item %lld", want ? "like" : "unlike", (long long) user, (long long) item);
}

static const char *
answer_kind(LikeOutcome outcome, TraceOutcome how)
{
	if (outcome == LIKE_REJECTED)
	{
		return "refused";
	}
	return how == TRACE_OPEN ? "statement" : outcome == LIKE_UNKNOWN ? "unknown" : "commit";
}

void
trace_answer(const Session *session, int64_t user, int64_t item, const LikeResult *result, TraceOutcome outcome)
{
	TraceEvent event = event_of(session, answer_kind(result->outcome, outcome),
								result->outcome == LIKE_UNKNOWN ? TRACE_UNKNOWN : outcome);
	bool changed = result->outcome == LIKE_CHANGED || (result->outcome == LIKE_UNKNOWN && result->changed);
	int64_t seen = changed ? result->version - 1 : result->version;
	char pair[WORD_BYTES];
	Text text = {0};

	if (!trace_is_open())
	{
		return;
	}
	(void) snprintf(pair, sizeof(pair), "pair.%lld.%lld", (long long) user, (long long) item);
	/* A number that comes later tells nothing of the order of commits. */
	if (changed && result->seq != 0)
	{
		mark_log(&event, TRACE_NUMBERED, SEQ, result->seq, 0);
	}
	if (changed)
	{
		trace_mark(&event, TRACE_MADE, pair, result->version, 0);
	}
	/* The version before was read under the lock of the row. */
	if (result->outcome != LIKE_REJECTED && seen > 0)
	{
		trace_mark(&event, TRACE_SAW, pair, seen, 0);
	}
	if ((result->outcome == LIKE_UNKNOWN && session_is_lost(session)) || strcmp(result->sqlstate, LOST_SQLSTATE) == 0)
	{
		trace_mark(&event, TRACE_LOST, "server", 0, 0);
	}
	text_append(&text, "user %lld item %lld ", (long long) user, (long long) item);
	like_describe(result, &text);
	if (result->outcome == LIKE_UNKNOWN && changed)
	{
		text_append(&text, " would be v%lld, seq=%lld", (long long) result->version, (long long) result->seq);
	}
	tell(&event, &text);
}

static bool
traced_set(Session *session, int64_t user, int64_t item, bool want, LikeResult *result)
{
	trace_request(session, user, item, want);
	if (!doing->set(session, user, item, want, result))
	{
		return false;
	}
	trace_answer(session, user, item, result, TRACE_DONE);
	return true;
}


/* --- batches --- */

void
trace_batch_sent(const Session *session, int64_t lowest, int64_t highest)
{
	TraceEvent event = event_of(session, "begin", TRACE_DONE);

	trace_event(&event, "batch of seq %lld..%lld", (long long) lowest, (long long) highest);
}

void
trace_batch(const Session *session, int64_t lowest, int64_t highest, const LikeTotals *totals)
{
	TraceEvent event = event_of(session, "batch", TRACE_DONE);
	Text text = {0};

	if (!trace_is_open())
	{
		return;
	}
	/* Its rows were read: the greatest number brings all below it, since numbers have no hole. */
	mark_log(&event, TRACE_SAW, SEQ, highest, 0);
	/* The row was locked from its first statement to its commit, and only grows. */
	mark_log(&event, TRACE_STANDS, WATERMARK, totals->watermark, 0);
	if (totals->applied > 0)
	{
		mark_log(&event, TRACE_ONE_OF, APPLIED, highest, 0);
	}
	if (totals->covered > 0)
	{
		mark_log(&event, TRACE_SOME, BASELINE, lowest, TRACE_LAST);
	}
	text_append(&text, "seq %lld..%lld ", (long long) lowest, (long long) highest);
	like_totals_describe(totals, &text);
	tell(&event, &text);
}

static bool
traced_deliver(Session *session, const int64_t *seqs, size_t count, int batch, LikeTotals *totals)
{
	int64_t lowest = count > 0 ? seqs[0] : 0, highest = lowest;

	for (size_t i = 1; i < count; i++)
	{
		lowest = seqs[i] < lowest ? seqs[i] : lowest;
		highest = seqs[i] > highest ? seqs[i] : highest;
	}
	trace_batch_sent(session, lowest, highest);
	if (!doing->deliver(session, seqs, count, batch, totals))
	{
		trace_tell(trace_client(session_name(session)), "refused", "batch of seq %lld..%lld", (long long) lowest,
				   (long long) highest);
		return false;
	}
	trace_batch(session, lowest, highest, totals);
	return true;
}

/* Which number was the greatest is not known: it may be any. */
void
trace_consumed(const Session *session, const LikeTotals *totals)
{
	TraceEvent event = event_of(session, "batch", TRACE_DONE);
	Text text = {0};

	if (!trace_is_open())
	{
		return;
	}
	mark_log(&event, TRACE_SAW, SEQ, totals->watermark, 0);
	if (totals->applied + totals->covered + totals->dup > 0)
	{
		mark_log(&event, TRACE_STANDS, WATERMARK, totals->watermark, 0);
	}
	if (totals->applied > 0)
	{
		mark_log(&event, TRACE_ONE_OF, APPLIED, TRACE_LAST, 0);
	}
	if (totals->covered > 0)
	{
		mark_log(&event, TRACE_SOME, BASELINE, 0, TRACE_LAST);
	}
	like_totals_describe(totals, &text);
	tell(&event, &text);
}


/* --- rebuilds --- */

static bool
traced_snapshot(Session *session, LikeSnapshot *snapshot)
{
	TraceEvent event = event_of(session, "snapshot", TRACE_DONE);

	if (!doing->snapshot(session, snapshot))
	{
		return false;
	}
	mark_log(&event, TRACE_SAW, SEQ, snapshot->seq, 0);
	trace_event(&event, "S=%lld", (long long) snapshot->seq);
	return true;
}

void
trace_installed(void *session, const LikeBaseline *baseline, const LikeInstall *install)
{
	TraceEvent event = event_of(session, "install", TRACE_DONE);
	char item[WORD_BYTES];

	(void) snprintf(item, sizeof(item), "base.%lld", (long long) baseline->item);
	if (install->outcome == INSTALL_SKIPPED)
	{
		mark_log(&event, TRACE_SOME, item, install->base_seq, install->base_seq);
		trace_event(&event, "%s skipped: a newer baseline, base_seq=%lld", baseline->label,
					(long long) install->base_seq);
		return;
	}
	mark_log(&event, TRACE_SAW, SEQ, install->base_seq, 0);
	mark_log(&event, TRACE_STANDS, item, install->base_seq, 0);
	mark_log(&event, TRACE_ONE_OF, item, install->base_seq, 0);
	mark_log(&event, TRACE_ONE_OF, BASELINE, install->base_seq, 0);
	if (install->applied_after_base != 0)
	{
		mark_log(&event, TRACE_SOME, APPLIED, install->base_seq + 1, TRACE_LAST);
	}
	trace_event(&event, "%s n %lld->%lld base_seq=%lld applied_after_base=%lld", baseline->label,
				(long long) install->old_n, (long long) install->new_n, (long long) install->base_seq,
				(long long) install->applied_after_base);
}

static bool
traced_install(Session *session, int64_t snapshot_seq, const LikeBaseline *baseline, Isolation isolation,
			   LikeInstall *install)
{
	trace_tell(trace_client(session_name(session)), "begin", "install of %s, S=%lld", baseline->label,
			   (long long) snapshot_seq);
	if (!doing->install(session, snapshot_seq, baseline, isolation, install))
	{
		return false;
	}
	trace_installed(session, baseline, install);
	return true;
}

const ClientSteps *
traced_steps(const ClientSteps *does)
{
	if (!trace_is_open())
	{
		return does;
	}
	doing = does;
	traced = *does;
	traced.set = traced_set;
	traced.deliver = traced_deliver;
	traced.snapshot = traced_snapshot;
	traced.install = traced_install;
	return &traced;
}


/* --- looking, and changing things past the system --- */

void
trace_audit(const Session *session, const LikeReadAudit *seen)
{
	TraceEvent event = event_of(session, "audit", TRACE_DONE);
	Text text = {0};

	if (trace_is_open())
	{
		mark_log(&event, TRACE_SAW, SEQ, seen->last_seq, 0);
		like_read_audit_describe(seen, &text);
		tell(&event, &text);
	}
}

void
trace_lost(const Session *session)
{
	TraceEvent event = event_of(session, "lost", TRACE_DONE);

	trace_mark(&event, TRACE_LOST, "server", 0, 0);
	trace_event(&event, "its connection is lost: %s", session_error(session)->sqlstate);
}

void
trace_forget(const Session *session, bool all, const char *what)
{
	static const char *const derived[] = {WATERMARK, BASELINE, "base", APPLIED};
	TraceEvent event = event_of(session, "cleared", TRACE_DONE);

	for (size_t i = 0; i < LENGTH_OF(derived); i++)
	{
		trace_mark(&event, TRACE_FORGET, derived[i], 0, 0);
	}
	if (all)
	{
		trace_mark(&event, TRACE_FORGET, SEQ, 0, 0);
		trace_mark(&event, TRACE_FORGET, "pair", 0, 0);
	}
	trace_event(&event, "%s", what);
}
