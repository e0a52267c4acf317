-- Deliver one event to a consumer, and let a consumer acknowledge what it was delivered.
--
-- Guarantee: an event takes effect once, whoever delivers it and how often, also when its registration is purged: at or
-- below the line of the purged nobody can know any more whether it took effect, so it is refused (55000) and not guessed.
--
-- Lock order: line row (shared), then the total. The line is locked before it is read and stays where it is until the
-- delivery has ended, so that no purge comes between the look at the registrations and the effect.

CREATE OR REPLACE FUNCTION dedup_deliver(p_seq bigint, OUT applied boolean)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_upto bigint;
BEGIN
	SELECT p.upto INTO STRICT v_upto FROM purged p WHERE p.id = 1 FOR SHARE;
	IF p_seq <= v_upto THEN
		RAISE EXCEPTION 'event % is at or below %, up to which registrations are purged', p_seq, v_upto
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;
	INSERT INTO registered (seq, at) VALUES (p_seq, now()) ON CONFLICT DO NOTHING;
	applied := FOUND;
	IF applied THEN
		UPDATE total t SET n = t.n + e.delta FROM event e WHERE t.id = 1 AND e.seq = p_seq;
	END IF;
END
$$;

CREATE OR REPLACE FUNCTION dedup_acknowledge(p_consumer text, p_seq bigint) RETURNS void
LANGUAGE sql VOLATILE
AS $$
	INSERT INTO consumer AS c (name, acknowledged) VALUES (p_consumer, p_seq)
		ON CONFLICT (name) DO UPDATE SET acknowledged = greatest(c.acknowledged, excluded.acknowledged)
$$;
