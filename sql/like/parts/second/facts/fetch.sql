-- What the consumer takes to the second database: committed events above a number, in order, with all that is needed there.
--
-- Guarantee: as like_pull(): whoever has seen number k never finds a smaller one later. An event that is seen is durable
-- where synchronous_commit is on, as it is by default: no crash takes back here what was counted there.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_fetch(p_after bigint, p_most bigint, OUT last bigint, OUT seqs bigint[], OUT items bigint[],
	OUT deltas smallint[])
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
AS $$
BEGIN
	SELECT s.last INTO STRICT last FROM like_seq s WHERE s.id = 1;
	SELECT coalesce(array_agg(e.seq), '{}'), coalesce(array_agg(e.item_id), '{}'), coalesce(array_agg(e.delta), '{}')
		INTO seqs, items, deltas
		FROM (SELECT o.* FROM like_outbox o WHERE o.seq > p_after ORDER BY o.seq LIMIT p_most) e;
END
$$;
