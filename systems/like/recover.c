/* Recovery after a crash or a wrong consumer: four steps in a fixed order. */
#include "like_private.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct
{
	Session *session;
	int64_t batch_size;
	LikeTell tell;
	void *context;
	LikeRecovery *recovery; /* out */
	int64_t items, missing; /* of the rebuild */
} Recovery;

static void tell(const Recovery *this, const char *format, ...) PRINTF_LIKE(2, 3);

static void
tell(const Recovery *this, const char *format, ...)
{
	Text line = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&line, format, args);
	va_end(args);
	this->tell(this->context, text_get(&line));
	text_free(&line);
}

/*
 * One batch from the watermark shows whether the consumer works; what it delivers twice is absorbed. A batch that the
 * server refuses, for want of a count row say, does not end the recovery: the rebuild may mend that.
 */
static bool
consumer_restart(Recovery *this)
{
	int64_t watermark;
	int64_t *seqs;
	size_t count;
	SqlStatus status;
	Text totals = {0};

	if (!like_watermark(this->session, &watermark) ||
		!like_pull(this->session, watermark, this->batch_size, &seqs, &count))
	{
		return false;
	}
	status = like_try_deliver(this->session, seqs, count, 1, &this->recovery->totals);
	free(seqs);
	if (status == SQL_ERROR)
	{
		this->recovery->totals = (LikeTotals){.watermark = watermark};
		tell(this, "recovery 1/4 consumer started from watermark=%" PRId64 " and was refused: %s", watermark,
			 session_error(this->session)->message);
		return true;
	}
	if (status != SQL_OK)
	{
		like_report(this->session, status, "cannot restart the consumer");
		return false;
	}
	like_totals_describe(&this->recovery->totals, &totals);
	tell(this, "recovery 1/4 consumer started from watermark=%" PRId64 ", first batch: %s", watermark,
		 text_get(&totals));
	text_free(&totals);
	return true;
}

static bool
write_side_audit(Recovery *this, bool *clean)
{
	LikeWriteAudit *audit = &this->recovery->write_side;
	Text fields = {0};

	if (!like_audit_write_side(this->session, audit))
	{
		return false;
	}
	*clean = like_write_side_clean(audit);
	like_write_audit_describe(audit, &fields);
	tell(this, "recovery 2/4 write side %s: %s", *clean ? "clean" : "damaged", text_get(&fields));
	text_free(&fields);
	return true;
}

static bool
log_audit(const Recovery *this, bool *whole)
{
	Text ahead = {0};
	bool done = like_audit_log(this->session, &ahead);

	*whole = done && text_get(&ahead)[0] == '\0';
	if (done && !*whole)
	{
		this->recovery->outcome = RECOVERY_LOG_REWOUND;
		tell(this, "recovery 2/4 log rewound: %s", text_get(&ahead));
	}
	text_free(&ahead);
	return done;
}

static void
install_tell(void *context, const LikeBaseline *baseline, const LikeInstall *install)
{
	Recovery *this = context;

	this->items++;
	this->missing += install->row_missing;
	if (install->outcome == INSTALL_SKIPPED)
	{
		tell(this, "recovery 3/4 %s skipped: newer baseline", baseline->label);
	}
	else if (install->row_missing || install->new_n != install->old_n)
	{
		tell(this, "recovery 3/4 %s %" PRId64 " -> %" PRId64 "%s", baseline->label, install->old_n, install->new_n,
			 install->row_missing ? " (its count row was missing)" : "");
	}
}

static bool
read_side_mend(Recovery *this)
{
	LikeReadAudit *audit = &this->recovery->before;
	Text fields = {0};

	if (!like_audit_read_side(this->session, audit))
	{
		return false;
	}
	this->recovery->rebuilt = audit->exact_violations > 0;
	like_read_audit_describe(audit, &fields);
	tell(this, "recovery 3/4 read side %s: %s", this->recovery->rebuilt ? "written wrongly, rebuilding" : "holds",
		 text_get(&fields));
	text_free(&fields);
	if (!this->recovery->rebuilt)
	{
		return true;
	}
	if (!like_rebuild_all(this->session, install_tell, this))
	{
		return false;
	}
	tell(this, "recovery 3/4 rebuilt %" PRId64 " items, %" PRId64 " count rows were missing", this->items,
		 this->missing);
	return true;
}

static bool
consumer_drain(Recovery *this)
{
	LikeRecovery *recovery = this->recovery;
	/* A watermark that is wrong says nothing about what was processed: then everything is delivered again. */
	bool wrong = recovery->before.watermark_violations > 0;
	int64_t after = wrong ? 0 : recovery->before.watermark;
	bool recovered;
	Text totals = {0};

	if ((wrong && !session_query(this->session, NULL, "SELECT like_watermark_reset()", NO_ARGS)) ||
		!like_drain_from(this->session, after, this->batch_size, &recovery->totals) ||
		!like_audit_read_side(this->session, &recovery->after))
	{
		return false;
	}
	recovered =
		recovery->after.lag == 0 && recovery->after.count_mismatch_items == 0 && like_read_side_holds(&recovery->after);
	recovery->outcome = recovered ? RECOVERY_DONE : RECOVERY_INCOMPLETE;
	like_totals_describe(&recovery->totals, &totals);
	tell(this, "recovery 4/4 drained, %s: %s lag=%" PRId64 " count_mismatch_items=%" PRId64,
		 recovered ? "recovered" : "incomplete", text_get(&totals), recovery->after.lag,
		 recovery->after.count_mismatch_items);
	text_free(&totals);
	return true;
}

bool
like_recover(Session *session, int64_t batch_size, LikeTell tell_line, void *context, LikeRecovery *recovery)
{
	Recovery this = {
		.session = session, .batch_size = batch_size, .tell = tell_line, .context = context, .recovery = recovery};
	bool clean, whole;

	*recovery = (LikeRecovery){0};
	if (!consumer_restart(&this) || !write_side_audit(&this, &clean))
	{
		return false;
	}
	if (!clean)
	{
		recovery->outcome = RECOVERY_WRITE_SIDE_DAMAGED;
		tell(&this, "write side damaged");
		return true;
	}
	if (!log_audit(&this, &whole) || !whole)
	{
		return !whole && recovery->outcome == RECOVERY_LOG_REWOUND;
	}
	return read_side_mend(&this) && consumer_drain(&this);
}
