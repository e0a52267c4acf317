-- The tables of the like counter.
--
-- Guarantee: what can be refused by a key is refused by a key. A second fact of a pair, a second event under one
-- number, a second event under one version of a pair and a second registration of an event are each 23505, whoever
-- writes them. The functions beside this file are built so that these keys are never met; they are the last guard.
--
-- Lock order of all functions: fact row, then like_seq (write path); watermark row, then count rows in item order
-- (consumer); one count row (rebuild).
--
-- Why one fillfactor and no more: no index covers what the functions update, so an update stays on its page (HOT) where
-- there is room. The single rows have a page of their own, and pairs find room often enough (99 % measured). Count rows
-- are inserted with their items, page after page, and all of them are updated later: they are given that room.

CREATE TABLE item (
	item_id bigint PRIMARY KEY,
	label text NOT NULL UNIQUE CHECK (octet_length(label) BETWEEN 1 AND 31)
);

-- Facts: who likes what. version counts the state changes; 0 is the placeholder of a pair's first request.
CREATE TABLE like_fact (
	user_id bigint NOT NULL,
	item_id bigint NOT NULL REFERENCES item,
	liked boolean NOT NULL,
	version bigint NOT NULL CHECK (version >= 0),
	PRIMARY KEY (user_id, item_id)
);

-- The number of the last event. A row and no sequence: a sequence leaves holes when a transaction aborts or the server
-- crashes, and hands numbers out before their transactions commit. This row is locked from the increment to the
-- end of the transaction, so a rollback gives the number back and number order is commit order.
CREATE TABLE like_seq (
	id integer PRIMARY KEY CHECK (id = 1),
	last bigint NOT NULL
);

-- One event per state change, written in the transaction of the change.
CREATE TABLE like_outbox (
	seq bigint PRIMARY KEY,
	user_id bigint NOT NULL,
	item_id bigint NOT NULL,
	delta smallint NOT NULL CHECK (delta IN (-1, 1)),
	version bigint NOT NULL,
	UNIQUE (user_id, item_id, version)
);

-- For the events of one item above a number: pending events when reading, applied ones when a baseline is installed.
CREATE INDEX like_outbox_item ON like_outbox (item_id, seq);

-- Derived: base_seq is the last event contained in the installed baseline.
CREATE TABLE like_count (
	item_id bigint PRIMARY KEY REFERENCES item,
	n bigint NOT NULL,
	base_seq bigint NOT NULL
) WITH (fillfactor = 50);

-- Derived: each event that has taken effect, added to the count (APPLIED) or contained in a baseline (COVERED).
CREATE TABLE processed_event (
	seq bigint PRIMARY KEY,
	how text NOT NULL CHECK (how IN ('APPLIED', 'COVERED'))
);

-- Derived: the largest w such that 1..w are all processed.
CREATE TABLE counter_watermark (
	id integer PRIMARY KEY CHECK (id = 1),
	applied_upto bigint NOT NULL
);

INSERT INTO like_seq (id, last) VALUES (1, 0);
INSERT INTO counter_watermark (id, applied_upto) VALUES (1, 0);
