-- What the second database knows, to be compared in the first: of one item for a read, of all for the audit. Each in one snapshot.
--
-- Lock order: none, nothing is locked. The read costs what is processed above the watermark, the audit reads all.
--
-- Why a path of their own: whoever asks may have another schema before this one.

CREATE OR REPLACE FUNCTION like_watermark() RETURNS bigint
LANGUAGE sql STABLE
SET search_path FROM CURRENT
AS $$
	SELECT w.applied_upto FROM counter_watermark w WHERE w.id = 1
$$;

CREATE OR REPLACE FUNCTION like_count_here(p_item bigint)
	RETURNS TABLE (n bigint, watermark bigint, above int8multirange)
LANGUAGE sql STABLE
SET search_path FROM CURRENT
AS $$
	SELECT c.n, w.applied_upto, (
			SELECT coalesce(range_agg(int8range(p.seq, p.seq + 1)), '{}') FROM processed_event p
				WHERE p.seq > w.applied_upto)
		FROM like_count c, counter_watermark w WHERE c.item_id = p_item AND w.id = 1
$$;

CREATE OR REPLACE FUNCTION like_counts_here(OUT items bigint[], OUT ns bigint[], OUT bases bigint[], OUT watermark bigint,
	OUT processed int8multirange)
LANGUAGE sql STABLE
SET search_path FROM CURRENT
AS $$
	SELECT coalesce(array_agg(c.item_id ORDER BY c.item_id), '{}'), coalesce(array_agg(c.n ORDER BY c.item_id), '{}'),
		coalesce(array_agg(c.base_seq ORDER BY c.item_id), '{}'),
		(SELECT w.applied_upto FROM counter_watermark w WHERE w.id = 1),
		(SELECT coalesce(range_agg(int8range(p.seq, p.seq + 1)), '{}') FROM processed_event p)
		FROM like_count c
$$;
