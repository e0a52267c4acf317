-- The numbers of committed events above a number, in order: what a consumer fetches for its next batch.
--
-- Guarantee: number order is commit order, so whoever has seen number k never finds a smaller one later.
--
-- Lock order: none, nothing is locked; consumers that pull at once get the same numbers, and the dedup sorts that out.
--
-- Why the setting: the outbox grows without end, and a planner without statistics may prefer to read it whole.

CREATE OR REPLACE FUNCTION like_pull(p_after bigint, p_most bigint) RETURNS bigint[]
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
AS $$
BEGIN
	RETURN ARRAY(SELECT o.seq FROM like_outbox o WHERE o.seq > p_after ORDER BY o.seq LIMIT p_most);
END
$$;
