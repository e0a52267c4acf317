-- Events as the cases count them, where events have an id and no number: in the order of their ids, without the holes. See
-- events.sql, whose place this takes.

CREATE VIEW lab_event AS
	SELECT row_number() OVER (ORDER BY o.seq) AS number, o.seq AS event, o.user_id, o.item_id, o.delta, o.version,
		o.xmin::text::bigint AS xid, p.how
		FROM like_outbox o LEFT JOIN processed_event p USING (seq);

CREATE FUNCTION lab_events(p_numbers bigint[]) RETURNS bigint[]
LANGUAGE sql STABLE
AS $$
	SELECT coalesce(array_agg(coalesce(e.event, n.number) ORDER BY n.k), '{}')
		FROM unnest(p_numbers) WITH ORDINALITY n (number, k) LEFT JOIN lab_event e USING (number)
$$;

CREATE FUNCTION lab_last() RETURNS bigint
LANGUAGE sql STABLE
AS $$
	SELECT count(*) FROM like_outbox
$$;

CREATE FUNCTION lab_forget(p_numbers bigint[]) RETURNS void
LANGUAGE sql VOLATILE
AS $$
	DELETE FROM processed_event WHERE seq = ANY (lab_events(p_numbers))
$$;

CREATE FUNCTION lab_sum(p_item bigint, p_seq bigint) RETURNS bigint
LANGUAGE sql STABLE
AS $$
	SELECT sum(e.delta) FROM lab_event e WHERE e.item_id = p_item AND e.number <= p_seq
$$;
