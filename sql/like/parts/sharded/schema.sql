-- Sharded counts: an item's count is the sum of its shards, so that consumers of a hot item need not wait for each other.
--
-- Guarantee: the shards of an item are 0..k-1, with one base_seq. An item begins with the one shard that is inserted with
-- it, and like_reshard() gives it more, or fewer.
--
-- Lock order of all functions: fact row, then like_seq (write path); one shard of each item, in item order, then
-- registrations in number order, then the watermark row if it is free (consumer); shard 0 of one item, then its other
-- shards in order (rebuild, and a change of their number); the watermark row alone (who follows it). A lane is never waited for.
--
-- Why shard 0 first: a shard that is added while somebody waits for a lock is not in the snapshot of his statement. Who
-- holds shard 0 sees in his next one all there are, and none is added or taken away.

ALTER TABLE like_count ADD COLUMN shard integer NOT NULL DEFAULT 0 CHECK (shard >= 0);
ALTER TABLE like_count DROP CONSTRAINT like_count_pkey;
ALTER TABLE like_count ADD PRIMARY KEY (item_id, shard);

-- The lane of the calling transaction, until it ends: the lowest number that no other transaction has. Batches that are in
-- flight at the same time have different lanes, and a lane is a shard of each item: they meet only where an item has fewer
-- shards than there are consumers. Past the last lane they share it.
CREATE OR REPLACE FUNCTION like_lane() RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	LAST CONSTANT integer := 999;
BEGIN
	FOR lane IN 0 .. LAST - 1 LOOP
		IF pg_try_advisory_xact_lock(hashtext('like_lane'), lane) THEN
			RETURN lane;
		END IF;
	END LOOP;
	RETURN LAST;
END
$$;
