-- Two accounts, and an outbox whose rows have a key.

CREATE TABLE account (
	id integer PRIMARY KEY,
	balance bigint NOT NULL
);

CREATE TABLE outbox (
	key text PRIMARY KEY,
	amount bigint NOT NULL
);

INSERT INTO account (id, balance) VALUES (1, 100), (2, 0);
