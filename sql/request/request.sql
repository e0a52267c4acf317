-- Requests that carry an identity: what was asked, the event that tells of it, a tally, and the function that writes all
-- three.
--
-- Guarantee: a request takes effect once, however often it is sent, exactly as long as each sending carries the identity
-- of the first. Fact, event and tally are written by one transaction, and only by the first of this identity; fresh says
-- whether this was it. The key knows identities and nothing else: the same wish under two identities is two requests.
--
-- Lock order: the request's row, then the tally. Read Committed: of two sendings at once the second waits at its INSERT
-- until the first has ended, and then finds the row, or none when the first was rolled back.

CREATE TABLE request (
	id text PRIMARY KEY,
	wish text NOT NULL
);

CREATE TABLE request_event (
	request_id text NOT NULL UNIQUE REFERENCES request
);

CREATE TABLE tally (
	id integer PRIMARY KEY CHECK (id = 1),
	n bigint NOT NULL
);

INSERT INTO tally (id, n) VALUES (1, 0);

CREATE OR REPLACE FUNCTION request_submit(p_id text, p_wish text, OUT fresh boolean)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	INSERT INTO request (id, wish) VALUES (p_id, p_wish) ON CONFLICT DO NOTHING;
	fresh := FOUND;
	IF fresh THEN
		INSERT INTO request_event (request_id) VALUES (p_id);
		UPDATE tally t SET n = t.n + 1 WHERE t.id = 1;
	END IF;
END
$$;
