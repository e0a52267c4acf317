-- P07: a pass that has come to its end leaves nothing behind.
--
-- The guard taken away: at the end of a pass the items that it has gone by are looked at again. Items are pulled one after
-- another, and in no order of commits: what has come to an item meanwhile is left, while the consumer says that it is done.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_left_behind(p_event bigint) RETURNS boolean
LANGUAGE sql STABLE
AS $$
	SELECT false
$$;
