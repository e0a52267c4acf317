-- Events, a total that each of them takes effect on once, and the registrations that see to it and are purged in the end.
--
-- Guarantee: an event is registered once (23505 for a second time), and the line of the purged never goes back.
--
-- Lock order of the functions: line row, then consumer rows, then the total.

CREATE TABLE event (
	seq bigint PRIMARY KEY,
	delta bigint NOT NULL
);

CREATE TABLE registered (
	seq bigint PRIMARY KEY REFERENCES event,
	at timestamptz NOT NULL
);

-- Each consumer's position: it has acknowledged all events up to it, and can be sent any above it once more.
CREATE TABLE consumer (
	name text PRIMARY KEY,
	acknowledged bigint NOT NULL
);

CREATE TABLE purged (
	id integer PRIMARY KEY CHECK (id = 1),
	upto bigint NOT NULL
);

CREATE TABLE total (
	id integer PRIMARY KEY CHECK (id = 1),
	n bigint NOT NULL
);

INSERT INTO purged (id, upto) VALUES (1, 0);
INSERT INTO total (id, n) VALUES (1, 0);
