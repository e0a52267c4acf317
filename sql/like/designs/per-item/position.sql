-- Where a consumer stands: at the watermark of each item.
--
-- Guarantee: one statement each, hence one snapshot. like_watermark() is the number of events at or below the watermarks.
-- like_last(event) is the last event of that item. like_left_behind(event): items are pulled one after another, so what
-- comes to an item that was passed is left until the next pass.
--
-- Lock order: none, nothing is locked; the reset locks the count rows in item order, as a consumer does.
--
-- Why the settings: items that have nothing left are passed over by the two keys, without a look at their events.

CREATE OR REPLACE FUNCTION like_watermark() RETURNS bigint
LANGUAGE sql STABLE
AS $$
	SELECT coalesce(sum(w.applied_upto), 0)::bigint FROM counter_watermark w
$$;

CREATE OR REPLACE FUNCTION like_last(p_event bigint) RETURNS bigint
LANGUAGE sql STABLE
AS $$
	SELECT coalesce(max(like_event(s.item_id, s.last)), 0) FROM like_seq s WHERE s.item_id = like_event_item(p_event)
$$;

CREATE OR REPLACE FUNCTION like_left_behind(p_event bigint) RETURNS boolean
LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
AS $$
	SELECT EXISTS (
		SELECT FROM like_seq s
			JOIN counter_watermark w USING (item_id)
			CROSS JOIN LATERAL (
				SELECT FROM like_outbox o
					WHERE o.item_id = s.item_id AND o.seq > w.applied_upto AND like_event(o.item_id, o.seq) <= p_event
						AND (SELECT p.seq FROM processed_event p WHERE p.item_id = o.item_id AND p.seq = o.seq) IS NULL
					LIMIT 1) behind
			WHERE s.item_id <= like_event_item(p_event) AND s.last > w.applied_upto)
$$;

CREATE OR REPLACE FUNCTION like_watermark_reset() RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	PERFORM c.item_id FROM like_count c ORDER BY c.item_id FOR UPDATE;
	UPDATE counter_watermark SET applied_upto = 0;
END
$$;

CREATE OR REPLACE FUNCTION like_stream_position(OUT last bigint, OUT watermark bigint)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
	RAISE EXCEPTION 'events have no order over all items, and cannot be published to one stream'
		USING ERRCODE = 'feature_not_supported';
END
$$;
