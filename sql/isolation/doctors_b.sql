-- Two doctors on call, side B, for psql -X -v ON_ERROR_STOP=1 -v level='REPEATABLE READ' (or SERIALIZABLE). See doctors_a.sql.
-- An error stops psql, but for the one COMMIT whose SQLSTATE is to be seen.

-- r2:
BEGIN ISOLATION LEVEL :level;
SELECT count(*) AS available FROM isolation_demo.doctors WHERE on_call;

-- w2:
UPDATE isolation_demo.doctors SET on_call = false WHERE id = 2
  AND (SELECT count(*) FROM isolation_demo.doctors WHERE on_call) > 1 RETURNING id;

-- c2:
\set ON_ERROR_STOP off
COMMIT;
\echo commit_state :SQLSTATE
\set ON_ERROR_STOP on

-- again: the whole decision
BEGIN ISOLATION LEVEL :level;
SELECT count(*) AS available FROM isolation_demo.doctors WHERE on_call;
UPDATE isolation_demo.doctors SET on_call = false WHERE id = 2
  AND (SELECT count(*) FROM isolation_demo.doctors WHERE on_call) > 1 RETURNING id;
COMMIT;
