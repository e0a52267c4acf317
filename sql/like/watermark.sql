-- Where the watermark stands: the largest number up to which all events are processed, as far as it was followed.
--
-- Guarantee: never above the end of the contiguous run of processed numbers.
--
-- Lock order: none, nothing is locked.
--
-- Why a function: here whoever processes events moves the watermark with them. Where that is left to others, asking for it is
-- what carries it on.

CREATE OR REPLACE FUNCTION like_watermark() RETURNS bigint
LANGUAGE sql STABLE
AS $$
	SELECT w.applied_upto FROM counter_watermark w WHERE w.id = 1
$$;
