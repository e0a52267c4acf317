-- As the file of this name for numbers that are one row for all. Here an event is called by its item and its number, and no
-- order of all events is told: the lab gives their rows one, drawn under the item's number row, so that it has the items'
-- orders in it, and of two events, one acknowledged before the other began, the earlier before the later.

ALTER TABLE like_outbox ADD COLUMN lab_id bigint GENERATED ALWAYS AS IDENTITY (CACHE 1);

CREATE VIEW lab_event AS
	SELECT row_number() OVER (ORDER BY o.lab_id) AS number, like_event(o.item_id, o.seq) AS event, o.user_id, o.item_id,
		o.delta, o.version, o.xmin::text::bigint AS xid, p.how
		FROM like_outbox o LEFT JOIN processed_event p USING (item_id, seq);

CREATE FUNCTION lab_events(p_numbers bigint[]) RETURNS bigint[]
LANGUAGE sql STABLE
AS $$
	SELECT coalesce(array_agg(coalesce(e.event, l.number) ORDER BY l.k), '{}')
		FROM unnest(p_numbers) WITH ORDINALITY l (number, k) LEFT JOIN lab_event e USING (number)
$$;

CREATE FUNCTION lab_last() RETURNS bigint
LANGUAGE sql STABLE
AS $$
	SELECT coalesce(sum(s.last), 0)::bigint FROM like_seq s
$$;

CREATE FUNCTION lab_forget(p_numbers bigint[]) RETURNS void
LANGUAGE sql VOLATILE
AS $$
	DELETE FROM processed_event p USING lab_event e
		WHERE e.number = ANY (p_numbers) AND like_event(p.item_id, p.seq) = e.event
$$;
