-- The first half of a rebuild: S, how many events the snapshot contains, and C(S), the facts of every item, those
-- without any included.
--
-- Guarantee: the facts are the effects of the events in this snapshot and of no others: fact and event are of one
-- transaction, which a snapshot contains whole or not at all. It is kept under its S, for like_install(). Snapshots of
-- one server are contained in one another, so S tells an older one from a newer one.
--
-- Lock order: none. Run it in a Repeatable Read transaction: S, the snapshot and C(S) must be one snapshot, however
-- many statements ask for them.
--
-- Why S is what is processed and what is not: both are known without walking over history.
--
-- Without any item there is one row that has only seq.

CREATE OR REPLACE FUNCTION like_snapshot() RETURNS TABLE (seq bigint, item_id bigint, label text, facts bigint)
LANGUAGE sql VOLATILE
AS $$
	WITH baseline AS (
		INSERT INTO like_baseline (seq, snapshot)
			SELECT w.applied_upto + (SELECT count(*) FROM like_pending), pg_current_snapshot()
				FROM counter_watermark w WHERE w.id = 1
			RETURNING like_baseline.seq
	)
	SELECT b.seq, i.item_id, i.label, coalesce(f.facts, 0)
		FROM baseline b
		LEFT JOIN item i ON true
		LEFT JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f USING (item_id)
		ORDER BY i.item_id
$$;
