-- The second of two databases: counts, registrations and the watermark, of facts and events that lie in the first, ../facts/.
--
-- Guarantee: a registration has what the rebuild must know of its event, for the event itself is not here. The watermark is
-- kept where the counts are: it is moved by the transaction that moves them. Kept in the first, it would be confirmed before
-- that commit, and a crash between the two loses events, or after it, and they come twice.
--
-- Lock order of all functions: watermark row, then count rows in item order (consumer); one count row (rebuild).

CREATE TABLE like_count (
	item_id bigint PRIMARY KEY,
	n bigint NOT NULL,
	base_seq bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE processed_event (
	seq bigint PRIMARY KEY,
	item_id bigint NOT NULL,
	delta smallint NOT NULL CHECK (delta IN (-1, 1)),
	how text NOT NULL CHECK (how IN ('APPLIED', 'COVERED'))
);

-- For what was applied to an item above a number, when a baseline is installed.
CREATE INDEX processed_event_item ON processed_event (item_id, seq);

CREATE TABLE counter_watermark (
	id integer PRIMARY KEY CHECK (id = 1),
	applied_upto bigint NOT NULL
);

INSERT INTO counter_watermark (id, applied_upto) VALUES (1, 0);
