-- Two doctors on call, and what a client that decides by itself asks: a number, then one write. Nobody but the client
-- knows the rule "leave only where two are on call".
--
-- Guarantee: none of its own. At Serializable two such decisions at once end in 40001 for one of them.
-- Lock order: none, each writes one row.

CREATE TABLE doctors (name text PRIMARY KEY, on_call boolean NOT NULL);
INSERT INTO doctors VALUES ('alice', true), ('bob', true);

CREATE FUNCTION doctors_on_call() RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FROM doctors WHERE on_call
$$;

CREATE FUNCTION doctor_leaves(who text) RETURNS void LANGUAGE sql AS $$
	UPDATE doctors SET on_call = false WHERE name = who
$$;

-- Signs in, perhaps once more: the number stays as it is, the row is written.
CREATE FUNCTION doctor_signs_in(who text) RETURNS void LANGUAGE sql AS $$
	UPDATE doctors SET on_call = true WHERE name = who
$$;
