-- The numbers of committed events above a number, in order: what a consumer fetches for its next batch.
--
-- Guarantee: when it answers none, every event that had committed when it was called is at or below p_after. Whoever has
-- seen number k never finds a smaller one later: a batch of numbers appears at once.
--
-- Lock order: the sequencer's, see number.sql, and only when there are fewer than p_most numbered events. So whoever has
-- come to the end takes the sequencer's turn, and consumers go on without a sequencer beside them. Read Committed.
--
-- Why the setting: the outbox grows without end, and a planner without statistics may prefer to read it whole.

CREATE OR REPLACE FUNCTION like_pull(p_after bigint, p_most bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
	v_seqs bigint[];
BEGIN
	v_seqs := ARRAY(SELECT o.seq FROM like_outbox o WHERE o.seq > p_after ORDER BY o.seq LIMIT p_most);
	IF cardinality(v_seqs) < p_most THEN
		PERFORM like_number(p_most);
		v_seqs := ARRAY(SELECT o.seq FROM like_outbox o WHERE o.seq > p_after ORDER BY o.seq LIMIT p_most);
	END IF;
	RETURN v_seqs;
END
$$;
