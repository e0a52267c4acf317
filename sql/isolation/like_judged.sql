-- What must hold of the like system in every consistent snapshot, as views: each has rows only where it is broken, and
-- they say how. Numbered as the invariants of the like system. The specs beside this file name them as their invariants. They follow the audits in sql/like/, which
-- count and read the same tables; a counterexample has to show.
--
-- Lock order: none, nothing is locked.

-- 1. At most one fact per pair; its version counts its state changes.
CREATE VIEW broken_facts AS
	SELECT user_id, item_id, f.facts, f.version, coalesce(o.events, 0) AS events
		FROM (SELECT user_id, item_id, count(*) AS facts, max(version) AS version FROM like_fact
			GROUP BY user_id, item_id) f
		FULL JOIN (SELECT user_id, item_id, count(*) AS events FROM like_outbox GROUP BY user_id, item_id) o
			USING (user_id, item_id)
		WHERE f.facts IS DISTINCT FROM 1 OR f.version <> coalesce(o.events, 0);

-- 2. One event per state change, with the delta that follows from the old state: of a pair, the first event is a like,
-- and from there they alternate to the state that the fact has.
CREATE VIEW broken_events AS
	SELECT user_id, item_id, f.liked, e.seq, e.delta, e.version, e.change
		FROM like_fact f
		FULL JOIN (
			SELECT o.*, row_number() OVER pair AS change, lead(o.seq) OVER pair IS NULL AS newest FROM like_outbox o
				WINDOW pair AS (PARTITION BY o.user_id, o.item_id ORDER BY o.seq)) e
			USING (user_id, item_id)
		WHERE e.version <> e.change OR e.delta <> (CASE WHEN e.change % 2 = 1 THEN 1 ELSE -1 END)
			OR (coalesce(e.newest, true) AND f.liked IS DISTINCT FROM (coalesce(e.delta, -1) = 1));

-- 3. The visible numbers are exactly 1..last.
CREATE VIEW broken_numbers AS
	SELECT seq, o.seq IS NULL AS missing, (SELECT s.last FROM like_seq s) AS last
		FROM (SELECT generate_series(1, s.last) AS seq FROM like_seq s) n
		FULL JOIN like_outbox o USING (seq)
		WHERE n.seq IS NULL OR o.seq IS NULL;

-- 4. An event takes effect once: registered once, and as COVERED only where the installed baseline contains it.
CREATE VIEW broken_effects AS
	SELECT p.seq, p.times, p.how, o.item_id, c.base_seq
		FROM (SELECT seq, count(*) AS times, max(how) AS how FROM processed_event GROUP BY seq) p
		LEFT JOIN like_outbox o USING (seq)
		LEFT JOIN like_count c USING (item_id)
		WHERE p.times <> 1 OR o.seq IS NULL OR c.base_seq IS NULL OR (p.how = 'COVERED' AND p.seq > c.base_seq);

-- 5. n plus the deltas of unprocessed events above base_seq is the number of facts, and n is off by no more than its
-- unprocessed events.
CREATE VIEW broken_counts AS
	SELECT item_id, c.n, c.base_seq, f.facts, e.pending, e.pending_delta
		FROM item i
		LEFT JOIN like_count c USING (item_id)
		CROSS JOIN LATERAL (SELECT count(*) AS facts FROM like_fact l WHERE l.item_id = i.item_id AND l.liked) f
		CROSS JOIN LATERAL (
			SELECT count(*) AS pending, coalesce(sum(o.delta) FILTER (WHERE o.seq > c.base_seq), 0) AS pending_delta
				FROM like_outbox o
				WHERE o.item_id = i.item_id AND NOT EXISTS (SELECT FROM processed_event p WHERE p.seq = o.seq)) e
		WHERE c.n + e.pending_delta IS DISTINCT FROM f.facts OR abs(c.n - f.facts) > e.pending;

-- The watermark is the end of the contiguous run of registered numbers; with 3, unprocessed events are no more than the lag.
CREATE VIEW broken_watermark AS
	SELECT w.applied_upto, r.run_end, (SELECT s.last FROM like_seq s) AS last
		FROM counter_watermark w, (
			SELECT count(*) AS run_end
				FROM (SELECT seq, row_number() OVER (ORDER BY seq) AS k FROM processed_event WHERE seq >= 1) p
				WHERE p.seq = p.k) r
		WHERE w.applied_upto <> r.run_end;

-- Not in every snapshot, but when all events were delivered: the counts are the facts and nothing is left.
CREATE VIEW undrained AS
	SELECT i.item_id, c.n, f.facts, w.applied_upto, s.last
		FROM item i
		JOIN like_count c USING (item_id)
		CROSS JOIN LATERAL (SELECT count(*) AS facts FROM like_fact l WHERE l.item_id = i.item_id AND l.liked) f,
		counter_watermark w, like_seq s
		WHERE c.n <> f.facts OR w.applied_upto <> s.last;

-- Specs ask after every step of every interleaving. A function in PL/pgSQL keeps its plan, which a view cannot: each view
-- is asked through one of its own name.
DO $$
DECLARE
	v_name text;
BEGIN
	FOR v_name IN SELECT viewname FROM pg_views WHERE viewname ~ '^(broken_|undrained)' LOOP
		EXECUTE format('CREATE FUNCTION %1$I() RETURNS SETOF %1$I LANGUAGE plpgsql STABLE '
			'AS ''BEGIN RETURN QUERY SELECT * FROM %1$I; END''', v_name);
	END LOOP;
END
$$;

-- What the teardown of a spec does: as if nobody had liked anything. Items and their count rows stay.
CREATE FUNCTION forget_likes() RETURNS void
LANGUAGE sql VOLATILE
AS $$
	DELETE FROM processed_event;
	DELETE FROM like_outbox;
	DELETE FROM like_fact;
	UPDATE like_count SET n = 0, base_seq = 0;
	UPDATE like_seq SET last = 0;
	UPDATE counter_watermark SET applied_upto = 0;
$$;
