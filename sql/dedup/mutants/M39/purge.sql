-- M39: registrations are purged by their age.
--
-- The guards taken away, a pair: that an event is purged only at or below the position of every consumer, and the line
-- below which a delivery is refused. Either alone would hide that the other is missing. An event that is sent again after
-- the window is taken for new.
--
-- Lock order: none.

CREATE OR REPLACE FUNCTION dedup_purge(p_window interval, OUT deleted bigint)
LANGUAGE plpgsql VOLATILE STRICT
AS $$
BEGIN
	IF p_window <= interval '0' THEN
		RAISE EXCEPTION 'a window of % keeps nothing', p_window USING ERRCODE = 'invalid_parameter_value';
	END IF;
	DELETE FROM registered r WHERE r.at < now() - p_window;
	GET DIAGNOSTICS deleted = ROW_COUNT;
END
$$;
