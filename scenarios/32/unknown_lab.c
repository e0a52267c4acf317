#include "unknown_lab.h"

#include <stdlib.h>

Unknowns
resolve_unknowns(Scene *scene, Session *lab, uint64_t horizon, Requests *requests)
{
	static const char *const fates[] = {"undecided", "committed", "not committed"};
	Unknowns found = {0};

	free(requests->ops);
	require(scene, history_read(scene_history_path(scene), &requests->ops, &requests->count));
	requests->resolved = memory_grow(requests->resolved, requests->count * sizeof(*requests->resolved));
	for (size_t i = requests->settled; i < requests->count; i++)
	{
		HistoryOp *op = &requests->ops[i];

		requests->resolved[i] = RESOLVED_UNSET;
		if (op->outcome != OP_UNKNOWN)
		{
			continue;
		}
		found.unknown++;
		if (!like_resolve(lab, op->xid, horizon, &requests->resolved[i]))
		{
			require(scene, !session_is_lost(lab));
			requests->resolved[i] = RESOLVED_UNSET;
		}
		found.committed += requests->resolved[i] == RESOLVED_COMMITTED;
		found.committed_changed += requests->resolved[i] == RESOLVED_COMMITTED && op->changed;
		found.beyond_horizon += op->xid >= horizon;
		found.not_committed += requests->resolved[i] == RESOLVED_NOT_COMMITTED;
		note(scene, "unknown: user %lld item %lld, %s v%lld seq %lld, xid %s the horizon: %s", (long long) op->key[0],
			 (long long) op->key[1], op->changed ? "CHANGED" : "NOOP", (long long) op->version, (long long) op->number,
			 op->xid < horizon ? "below" : "at or above", fates[requests->resolved[i]]);
	}
	CHECK_EQ(scene, found.committed + found.not_committed, found.unknown, "unknown requests resolved by their xid");
	return found;
}

/*
 * Could this request have written this row: 1 or 0. An unknown one is known again by its transaction number, where the row is
 * still the one that its writer left.
 */
static int
wrote_row(const HistoryOp *op, Resolved resolved, const SqlResult *rows, int row)
{
	if (!op->changed || op->number != sql_int(rows, row, 0) || op->key[0] != sql_int(rows, row, 1) ||
		op->key[1] != sql_int(rows, row, 2) || op->version != sql_int(rows, row, 3))
	{
		return 0;
	}
	return op->outcome == OP_OK ||
		   (resolved == RESOLVED_COMMITTED &&
			(design()->numbers_later || (op->xid & UINT32_MAX) == (uint64_t) sql_int(rows, row, 4)));
}

static void
match_outbox(Scene *scene, Session *lab, Requests *requests)
{
	SqlResult *rows;
	int64_t acked = 0, unknown = 0, by_acked = 0, by_unknown = 0, unmatched = 0;

	learn_numbers(scene, lab, requests->ops, requests->count);
	require(scene, session_query(lab, &rows, "SELECT number, user_id, item_id, version, xid FROM lab_event", NO_ARGS));
	for (size_t i = 0; i < requests->count; i++)
	{
		acked += requests->ops[i].outcome == OP_OK && requests->ops[i].changed;
		unknown += requests->resolved[i] == RESOLVED_COMMITTED && requests->ops[i].changed;
	}
	for (int row = 0; row < sql_rows(rows); row++)
	{
		int of_acked = 0, of_unknown = 0;

		for (size_t i = 0; i < requests->count; i++)
		{
			int matches = wrote_row(&requests->ops[i], requests->resolved[i], rows, row);

			of_acked += requests->ops[i].outcome == OP_OK ? matches : 0;
			of_unknown += requests->ops[i].outcome == OP_OK ? 0 : matches;
		}
		by_acked += of_acked;
		by_unknown += of_unknown;
		unmatched += of_acked + of_unknown != 1;
	}
	CHECK_EQ(scene, unmatched, 0, "outbox rows without exactly one request that wrote them");
	CHECK_EQ(scene, by_acked, acked, "acked CHANGED found in the outbox under their number and version");
	CHECK_EQ(scene, by_unknown, unknown, "unknown CHANGED that committed, found by the xid in xmin");
	CHECK_EQ(scene, sql_rows(rows), acked + unknown, "outbox rows = acked CHANGED + unknown CHANGED that committed");
	sql_free(rows);
}

Unknowns
look_after_crash(Scene *scene, Session *lab, uint64_t horizon, Requests *requests)
{
	LikeWriteAudit facts = audit_write_side(scene, lab);
	LikeReadAudit counts = audit_read_side(scene, lab);
	Unknowns found = resolve_unknowns(scene, lab, horizon, requests);

	note(scene, "unknown=%lld committed=%lld (CHANGED %lld) not committed=%lld", (long long) found.unknown,
		 (long long) found.committed, (long long) found.committed_changed, (long long) found.not_committed);
	CHECK_EQ(scene, facts.gap_violations, 0, "numbers without a hole");
	CHECK_EQ(scene, facts.version_mismatch_pairs, 0, "pairs whose version is not their number of events");
	CHECK_EQ(scene, facts.delta_sum_mismatch_items, 0, "items whose deltas do not sum to their facts");
	CHECK(scene, like_read_side_holds(&counts), "identity, bound and watermark hold before draining");
	match_outbox(scene, lab, requests);
	return found;
}

void
send_unknowns_again(Scene *scene, Session *lab, Requests *requests, int worker)
{
	int64_t sent = 0, as_expected = 0, once = 0;

	for (size_t i = requests->settled; i < requests->count; i++)
	{
		const HistoryOp *op = &requests->ops[i];
		bool missing = requests->resolved[i] == RESOLVED_NOT_COMMITTED && op->changed;
		LikeResult result;

		if (op->outcome != OP_UNKNOWN)
		{
			continue;
		}
		require(scene, recorded_set(scene_history(scene), worker, lab, op->key[0], op->key[1], op->want, &result));
		number_events(scene, lab);
		sent++;
		as_expected += result.outcome == (missing ? LIKE_CHANGED : LIKE_NOOP) && result.liked == op->want &&
					   result.version == op->version;
		once += number_of(scene, lab,
						  "SELECT count(*) FROM like_outbox WHERE user_id = $1 AND item_id = $2 AND version = $3",
						  ARGS(arg_int(op->key[0]), arg_int(op->key[1]), arg_int(op->version))) == (op->version > 0);
	}
	requests->settled = requests->count;
	note(scene, "unknown requests sent again=%lld", (long long) sent);
	CHECK_EQ(scene, as_expected, sent, "sent again: NOOP where it had committed, CHANGED where not");
	CHECK_EQ(scene, once, sent, "sent again: one event of that version");
}

void
requests_free(Requests *requests)
{
	free(requests->ops);
	free(requests->resolved);
	*requests = (Requests){0};
}
