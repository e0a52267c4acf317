-- The log of each item is what everything else of it was derived from: nothing derived may know an event that it does not have.
--
-- Guarantee: an item whose watermark or baseline is above its last number is refused, and named with both numbers.
--
-- Lock order: none, nothing is locked. accept_log.sql is the way back.
--
-- What it does not see: a log that has grown past the watermark again before anybody asked.

CREATE OR REPLACE FUNCTION like_require_log(p_items bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_ahead record;
BEGIN
	SELECT CASE WHEN w.applied_upto > s.last THEN 'watermark' ELSE 'base_seq' END AS what,
			CASE WHEN w.applied_upto > s.last THEN w.applied_upto ELSE c.base_seq END AS seq, c.item_id, s.last INTO v_ahead
		FROM unnest(p_items) i (item_id)
		JOIN like_seq s USING (item_id) JOIN counter_watermark w USING (item_id) JOIN like_count c USING (item_id)
		WHERE greatest(w.applied_upto, c.base_seq) > s.last
		ORDER BY c.item_id LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION '% % of item % is ahead of the log, whose last event is %',
			v_ahead.what, v_ahead.seq, v_ahead.item_id, v_ahead.last USING ERRCODE = 'LK003',
			HINT = 'The log was restored or rewound. Stop the writers; like_accept_log() takes the derived side back to it.';
	END IF;
END
$$;

-- A line for each thing that is ahead of its item's log; none: nothing is.
CREATE OR REPLACE FUNCTION like_audit_log() RETURNS SETOF text
LANGUAGE sql STABLE
AS $$
	SELECT format('watermark %s of %s is ahead of the log, whose last event is %s', w.applied_upto, i.label, s.last)
		FROM item i JOIN like_seq s USING (item_id) JOIN counter_watermark w USING (item_id) WHERE w.applied_upto > s.last
	UNION ALL
	SELECT format('base_seq %s of %s is ahead of the log, whose last event is %s', c.base_seq, i.label, s.last)
		FROM item i JOIN like_seq s USING (item_id) JOIN like_count c USING (item_id) WHERE c.base_seq > s.last
	UNION ALL
	SELECT format('%s registered events up to %s of %s are ahead of the log, whose last event is %s',
			count(*), max(p.seq), i.label, s.last)
		FROM item i JOIN like_seq s USING (item_id) JOIN processed_event p USING (item_id)
		WHERE p.seq > s.last GROUP BY i.item_id, s.last
$$;
