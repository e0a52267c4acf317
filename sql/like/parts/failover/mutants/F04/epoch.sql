-- Twin F04: the epoch is not raised by a promotion. What is missing: the timeline, by which a server knows that it was promoted
-- since its row was written; the old primary is of the same epoch as the new one.

CREATE OR REPLACE FUNCTION server_admit(p_highest bigint, OUT epoch bigint, OUT timeline bigint, OUT admitted boolean)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	SELECT e.epoch, e.timeline INTO STRICT epoch, timeline FROM server_epoch e WHERE e.id = 1 FOR UPDATE;
	admitted := epoch >= p_highest;
END
$$;
