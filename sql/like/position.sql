-- Where a consumer stands.
--
-- Guarantee: one statement each, hence one snapshot. like_watermark() is the number of events of the contiguous run of
-- processed ones; pulling above it brings all that are not. like_last(event) is the last event of the log in which this one
-- lies, which here is the only one: an offset above it belongs to another history. like_stream_position() is both, for a relay,
-- which needs numbers that rise in the order of the log: a design without refuses. like_left_behind(event): whether anything
-- that is not processed lies at or below it and can no longer be pulled above it. In commit order there is never any.
--
-- Lock order: none, nothing is locked; the reset locks the watermark row.

CREATE OR REPLACE FUNCTION like_watermark() RETURNS bigint
LANGUAGE sql STABLE
AS $$
	SELECT w.applied_upto FROM counter_watermark w WHERE w.id = 1
$$;

CREATE OR REPLACE FUNCTION like_last(p_event bigint) RETURNS bigint
LANGUAGE sql STABLE
AS $$
	SELECT s.last FROM like_seq s WHERE s.id = 1
$$;

CREATE OR REPLACE FUNCTION like_left_behind(p_event bigint) RETURNS boolean
LANGUAGE sql STABLE
AS $$
	SELECT false
$$;

-- For a watermark that says something wrong: from 0 it follows what is registered, once everything is delivered again.
CREATE OR REPLACE FUNCTION like_watermark_reset() RETURNS void
LANGUAGE sql VOLATILE
AS $$
	UPDATE counter_watermark SET applied_upto = 0
$$;

CREATE OR REPLACE FUNCTION like_stream_position(OUT last bigint, OUT watermark bigint)
LANGUAGE sql STABLE
AS $$
	SELECT s.last, w.applied_upto FROM like_seq s, counter_watermark w WHERE s.id = 1 AND w.id = 1
$$;
