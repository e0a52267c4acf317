-- Events that cannot be applied, and numbers with two payloads.
--
-- Guarantee: every registration knows the event that it stands for, by a digest. An event that breaks a constraint of the counts,
-- be it a CHECK of an operator's or an error of a trigger, stops the consumers or is parked, as like_poison says. A parked
-- event is registered and has a row in like_parked, both or none; it is in no count above whose baseline it lies, and
-- the difference that this makes is known.
--
-- Lock order of all functions: as in the schema that this is loaded over; a count row before a parked row of its item.
--
-- Why a digest and not the payload: it is compared and never shown. It is the server's hash of a record, of 64 bits.

CREATE TABLE like_poison (
	id integer PRIMARY KEY CHECK (id = 1),
	mode text NOT NULL CHECK (mode IN ('stop', 'park'))
);

INSERT INTO like_poison (id, mode) VALUES (1, 'stop');

ALTER TABLE processed_event
	DROP CONSTRAINT processed_event_how_check,
	ADD CHECK (how IN ('APPLIED', 'COVERED', 'PARKED')),
	ADD COLUMN digest bigint NOT NULL;

CREATE TABLE like_parked (
	seq bigint PRIMARY KEY REFERENCES processed_event,
	user_id bigint NOT NULL,
	item_id bigint NOT NULL,
	delta smallint NOT NULL,
	version bigint NOT NULL,
	error text NOT NULL, -- SQLSTATE
	broken text NOT NULL, -- the constraint, "" where the error names none
	message text NOT NULL,
	parked_at timestamptz NOT NULL DEFAULT now(),
	attempts integer NOT NULL
);

CREATE INDEX like_parked_item ON like_parked (item_id, seq);

CREATE OR REPLACE FUNCTION like_digest(p_event like_outbox) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$
	SELECT hash_record_extended(ROW(p_event.user_id, p_event.item_id, p_event.delta, p_event.version), 0)
$$;
