-- Doctors on call, and the places that those called in later get: two rules over several rows, which no key can keep.
--
-- Rule 1: somebody is on call. Who signs off reads that another is, and writes only the own row.
-- Rule 2: places are 1, 2, 3 and on, each once. Who is called in counts the rows and inserts the next places. A key on the
-- place could keep this one, and is left out: what is looked at is the decision, not the key behind it.
--
-- Lock order: none. Both rules are kept by Serializable transactions and by nothing else: in Repeatable Read two
-- transactions that read the same rows and write different ones do not meet (manual 13.2.2, 13.2.3).

CREATE TABLE doctor (
	id integer PRIMARY KEY,
	on_call boolean NOT NULL
);

CREATE TABLE roster (
	doctor integer PRIMARY KEY,
	place bigint NOT NULL
);

INSERT INTO doctor (id, on_call) VALUES (1, true), (2, true);
INSERT INTO roster (doctor, place) VALUES (1, 1), (2, 2);
