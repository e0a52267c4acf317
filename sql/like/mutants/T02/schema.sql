-- T02: where the relay notes in the database what it has published, and goes on from there.
CREATE TABLE relay_position (
	id integer PRIMARY KEY CHECK (id = 1),
	published_upto bigint NOT NULL
);
INSERT INTO relay_position (id, published_upto) VALUES (1, 0);
