-- W04: the floor is the highest transaction of which something was processed.
--
-- The guard taken away: the floor contains nothing that can still come. Transaction numbers are drawn before the
-- commits: one that is lower and still running writes below the floor, and no reader sees its events.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_floor() RETURNS pg_snapshot
LANGUAGE sql STABLE
AS $$
	SELECT format('%s:%s:', m.top, m.top)::pg_snapshot
		FROM (SELECT coalesce(max(o.xid)::text::bigint, 0) + 1 AS top FROM processed_event p JOIN like_outbox o USING (seq)) m
$$;
