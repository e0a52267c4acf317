-- Where the number row and the watermark are an item's own.
--
-- Guarantee: as in the schema that this is loaded over, by item: events of an item have the numbers 1, 2, 3 and on, and
-- (item, number) is the key of an event and of its registration. An event's name outside of the tables is one bigint, the
-- item's id in its upper half and the number in its lower.
--
-- Lock order of all functions: fact row, then the item's number row (write path); count rows in item order, each
-- item's watermark under its own (consumer); one count row (rebuild). Whoever changes pairs of several items in one transaction locks
-- their number rows as it comes to them: in item order, or it may meet another one (40P01).
--
-- Why fillfactor: no index covers what is updated, so an update stays on its page where there is room, and all rows of
-- these two tables are updated again and again.

ALTER TABLE item ADD CHECK (item_id BETWEEN 1 AND 2147483647);

DROP TABLE like_seq;
CREATE TABLE like_seq (
	item_id bigint PRIMARY KEY REFERENCES item,
	last bigint NOT NULL CHECK (last BETWEEN 0 AND 4294967295)
) WITH (fillfactor = 50);

DROP TABLE counter_watermark;
CREATE TABLE counter_watermark (
	item_id bigint PRIMARY KEY REFERENCES item,
	applied_upto bigint NOT NULL
) WITH (fillfactor = 50);

ALTER TABLE like_outbox DROP CONSTRAINT like_outbox_pkey;
DROP INDEX like_outbox_item;
ALTER TABLE like_outbox ADD CONSTRAINT like_outbox_item PRIMARY KEY (item_id, seq);

DROP TABLE processed_event;
CREATE TABLE processed_event (
	item_id bigint NOT NULL,
	seq bigint NOT NULL,
	how text NOT NULL CHECK (how IN ('APPLIED', 'COVERED')),
	PRIMARY KEY (item_id, seq)
);

CREATE FUNCTION like_event(p_item bigint, p_seq bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
	SELECT p_item << 32 | p_seq
$$;

CREATE FUNCTION like_event_item(p_event bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
	SELECT p_event >> 32
$$;

CREATE FUNCTION like_event_seq(p_event bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
	SELECT p_event & 4294967295
$$;
