-- What the sequencer needs beside the tables of the like counter.
--
-- Guarantee: an event that has no number yet stands in like_unnumbered, one that has stands in like_outbox, and each is in
-- exactly one of them: like_number() moves it in one transaction.
--
-- Lock order of all functions: fact row (write path); the sequencer's advisory lock, then like_seq (numbering); the rest
-- as in the schema that this is loaded over.
--
-- Why CACHE 1: the id is drawn while the pair's fact row is locked, so the ids of a pair grow with its versions. A session
-- that keeps ids in stock gives a later version an older id.

CREATE TABLE like_unnumbered (
	id bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
	user_id bigint NOT NULL,
	item_id bigint NOT NULL,
	delta smallint NOT NULL CHECK (delta IN (-1, 1)),
	version bigint NOT NULL
);

-- Below and at the floor there is nothing left to number, and nothing can come any more. See number.sql.
ALTER TABLE like_seq
	ADD COLUMN floor bigint NOT NULL DEFAULT 0,
	ADD COLUMN next_floor bigint NOT NULL DEFAULT 0,
	ADD COLUMN next_floor_from xid8;
