-- The settings of a session of the tool.
--
-- Guarantee: they end with the session. Settings that a server does not have yet are left out.
--
-- work_mem: the count of a table of millions of keys stays in memory instead of being sorted. row_security off: a policy that would
-- hide rows is an error, and not a wrong count. lock_timeout: reading waits only for what locks the whole table, such as ALTER TABLE,
-- and then others wait behind. jit off: a chunk of keys is over before it would have been compiled. DateStyle, IntervalStyle,
-- bytea_output, extra_float_digits: keys that are kept as texts are the same in every session.

SELECT set_config(s.name, w.value, false)
	FROM (VALUES ('work_mem', '64MB'), ('jit', 'off'), ('row_security', 'off'), ('statement_timeout', '0'), ('lock_timeout', '10s'),
		('idle_in_transaction_session_timeout', '10min'), ('DateStyle', 'ISO'),
		('IntervalStyle', 'postgres'), ('bytea_output', 'hex'), ('extra_float_digits', '1')) w (name, value)
	JOIN pg_settings s ON lower(s.name) = lower(w.name);
