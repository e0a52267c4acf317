-- Events as the cases count them, 1, 2, 3 and on in the order in which they came, beside what they are called here: the
-- same.
--
-- lab_event has one row for each event that has a number: `number` is the cases' count, `event` what the system calls
-- it, `xid` the low half of the transaction that wrote its row, `how` is NULL while it is not registered. lab_events()
-- is a list of numbers in the system's terms; a number that no event has stays as it is. lab_last() is the last number,
-- lab_forget() takes registrations away, lab_sum() adds up the deltas that a baseline of this S contains. A design
-- whose events are called otherwise has a file of this name below its own.

CREATE VIEW lab_event AS
	SELECT o.seq AS number, o.seq AS event, o.user_id, o.item_id, o.delta, o.version, o.xmin::text::bigint AS xid, p.how
		FROM like_outbox o LEFT JOIN processed_event p USING (seq);

CREATE FUNCTION lab_events(p_numbers bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE
AS $$
	SELECT p_numbers
$$;

CREATE FUNCTION lab_last() RETURNS bigint
LANGUAGE sql STABLE
AS $$
	SELECT s.last FROM like_seq s
$$;

CREATE FUNCTION lab_forget(p_numbers bigint[]) RETURNS void
LANGUAGE sql VOLATILE
AS $$
	DELETE FROM processed_event WHERE seq = ANY (p_numbers)
$$;

CREATE FUNCTION lab_sum(p_item bigint, p_seq bigint) RETURNS bigint
LANGUAGE sql STABLE
AS $$
	SELECT sum(o.delta) FROM like_outbox o WHERE o.item_id = p_item AND o.seq <= p_seq
$$;
