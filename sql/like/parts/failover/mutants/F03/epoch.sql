-- Twin F03: no fence. What is missing: a server of an older epoch than the highest known is not told from the others.

CREATE OR REPLACE FUNCTION server_admit(p_highest bigint, OUT epoch bigint, OUT timeline bigint, OUT admitted boolean)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	SELECT e.epoch, e.timeline INTO STRICT epoch, timeline FROM server_epoch e WHERE e.id = 1 FOR UPDATE;
	IF timeline <> server_timeline() THEN
		UPDATE server_epoch e SET epoch = e.epoch + 1, timeline = server_timeline() WHERE e.id = 1
			RETURNING e.epoch, e.timeline INTO STRICT epoch, timeline;
	END IF;
	admitted := true;
END
$$;
