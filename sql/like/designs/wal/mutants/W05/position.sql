-- W05: a new slot has what commits from now on, and nobody reads what was committed before it was there.
--
-- The guard taken away: catch_up. What a slot that was lost had not brought is brought by none.
--
-- Lock order: as in the right reset.

CREATE OR REPLACE FUNCTION like_watermark_reset() RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(hashtext('like_feed'));
	PERFORM FROM counter_watermark w WHERE w.id = 1 FOR UPDATE;
	UPDATE counter_watermark SET applied_upto = (SELECT count(*) FROM processed_event), floor = '1:1:' WHERE id = 1;
	UPDATE counter_watermark SET floor = like_floor() WHERE id = 1;
END
$$;
