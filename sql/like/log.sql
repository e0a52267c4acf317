-- The log is what everything else was derived from: nothing derived may know an event that it does not have.
--
-- Guarantee: a watermark or a baseline above the last number is refused, and both numbers are named. It means that facts and
-- events were restored from an older backup than counts and registrations, or rewound. New events get the lost ones'
-- numbers then, and whoever went on would take them for duplicates, or for covered.
--
-- Lock order: none, nothing is locked. accept_log.sql is the way back.
--
-- What it does not see: a log that has grown past the watermark again before anybody asked.

CREATE OR REPLACE FUNCTION like_require_log(p_what text, p_seq bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_last bigint;
BEGIN
	SELECT s.last INTO STRICT v_last FROM like_seq s WHERE s.id = 1;
	IF p_seq > v_last THEN
		RAISE EXCEPTION '% % is ahead of the log, whose last event is %', p_what, p_seq, v_last USING ERRCODE = 'LK003',
			HINT = 'The log was restored or rewound. Stop the writers; like_accept_log() takes the derived side back to it.';
	END IF;
END
$$;

-- A line for each thing that is ahead of the log; none: nothing is. Reads count rows and the end of the registrations.
CREATE OR REPLACE FUNCTION like_audit_log() RETURNS SETOF text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
	RETURN QUERY
		SELECT format('watermark %s is ahead of the log, whose last event is %s', w.applied_upto, s.last)
			FROM like_seq s, counter_watermark w WHERE w.applied_upto > s.last
		UNION ALL
		SELECT format('base_seq %s of %s is ahead of the log, whose last event is %s', max(c.base_seq), i.label, s.last)
			FROM like_seq s, like_count c JOIN item i USING (item_id) WHERE c.base_seq > s.last GROUP BY i.item_id, s.last
		UNION ALL
		SELECT format('%s registered events up to %s are ahead of the log, whose last event is %s', count(*), max(p.seq), s.last)
			FROM like_seq s JOIN processed_event p ON p.seq > s.last GROUP BY s.last;
END
$$;
