-- Two doctors on call, side A, for psql -X -v ON_ERROR_STOP=1 -v level='REPEATABLE READ' (or SERIALIZABLE). Side B is doctors_b.sql.
-- Sections begin with a line `-- NAME:` and are played in the order create, r1 r2 w1 w2 c1 c2, look, again, look, clean.

-- create:
CREATE SCHEMA isolation_demo;
CREATE TABLE isolation_demo.doctors (id integer PRIMARY KEY, on_call boolean NOT NULL);
INSERT INTO isolation_demo.doctors VALUES (1, true), (2, true);

-- r1:
BEGIN ISOLATION LEVEL :level;
SELECT count(*) AS available FROM isolation_demo.doctors WHERE on_call;

-- w1:
UPDATE isolation_demo.doctors SET on_call = false WHERE id = 1
  AND (SELECT count(*) FROM isolation_demo.doctors WHERE on_call) > 1 RETURNING id;

-- c1:
COMMIT;

-- look:
SELECT count(*) AS available FROM isolation_demo.doctors WHERE on_call;

-- clean:
DROP SCHEMA isolation_demo CASCADE;
