-- Purge registrations that are older than a window and that no consumer can ask for any more.
--
-- Guarantee: what is deleted lies at or below the position of every consumer, and the line moves up to it in the same
-- transaction, so that a delivery at or below it is refused and not taken for new. A window that is not positive is
-- refused (22023): it would purge what was registered a moment ago. Without any consumer nothing is purged.
--
-- Lock order: line row, then consumer rows. The line waits for deliveries under way and they for it.
--
-- Age alone says nothing: how long an event is kept by whoever sends it, or who starts again from an old position, is not
-- known here.

CREATE OR REPLACE FUNCTION dedup_purge(p_window interval, OUT deleted bigint)
LANGUAGE plpgsql VOLATILE STRICT
AS $$
DECLARE
	v_line bigint;
BEGIN
	IF p_window <= interval '0' THEN
		RAISE EXCEPTION 'a window of % keeps nothing', p_window USING ERRCODE = 'invalid_parameter_value';
	END IF;
	PERFORM FROM purged p WHERE p.id = 1 FOR UPDATE;
	PERFORM FROM consumer c ORDER BY c.name FOR SHARE;

	SELECT min(c.acknowledged) INTO v_line FROM consumer c;
	SELECT max(r.seq) INTO v_line FROM registered r WHERE r.seq <= v_line AND r.at < now() - p_window
		AND NOT EXISTS (SELECT FROM registered k WHERE k.seq < r.seq AND k.at >= now() - p_window);

	DELETE FROM registered r WHERE r.seq <= v_line;
	GET DIAGNOSTICS deleted = ROW_COUNT;
	UPDATE purged p SET upto = greatest(p.upto, v_line) WHERE p.id = 1;
END
$$;
