-- Three ways to keep rule 1 (schema.sql), for a doctor who changes: off duty comes back, on call leaves if another stays.
-- Each function is one transaction's whole work, and answers what was decided: came back, left or stayed.
--
-- decide_serializable   reads, decides, writes its own row. In a Serializable transaction, whose 40001 is retried; in no other.
-- decide_all_rows       locks all the rows that the rule reads, in the order of their ids, then decides. Read Committed.
-- decide_count_row      locks the one row that has the number of those on call, then decides. Read Committed. Whoever else
--                       writes on_call has to keep that number, too.
-- Lock order: doctor rows by id; the count row before a doctor row.

CREATE TABLE on_call_count (
	single boolean PRIMARY KEY DEFAULT true CHECK (single),
	n bigint NOT NULL
);

INSERT INTO on_call_count (n) SELECT count(*) FROM doctor WHERE on_call;

CREATE FUNCTION change_duty(who integer, on_call_now bigint, is_on_call boolean) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	IF is_on_call AND on_call_now <= 1 THEN
		RETURN 'stayed';
	END IF;
	UPDATE doctor SET on_call = NOT is_on_call WHERE id = who;
	RETURN CASE WHEN is_on_call THEN 'left' ELSE 'came back' END;
END
$$;

CREATE FUNCTION decide_serializable(who integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	on_call_now bigint;
	is_on_call boolean;
BEGIN
	SELECT count(*) FILTER (WHERE on_call), bool_or(on_call) FILTER (WHERE id = who) INTO on_call_now, is_on_call
	FROM doctor;
	RETURN change_duty(who, on_call_now, is_on_call);
END
$$;

CREATE FUNCTION decide_all_rows(who integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	on_call_now bigint;
	is_on_call boolean;
BEGIN
	SELECT count(*) FILTER (WHERE on_call), bool_or(on_call) FILTER (WHERE id = who) INTO on_call_now, is_on_call
	FROM (SELECT id, on_call FROM doctor ORDER BY id FOR UPDATE) locked;
	RETURN change_duty(who, on_call_now, is_on_call);
END
$$;

CREATE FUNCTION decide_count_row(who integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	on_call_now bigint;
	decided text;
BEGIN
	SELECT n INTO on_call_now FROM on_call_count FOR UPDATE;
	-- a later statement than the lock: it sees what was committed before the lock was given
	SELECT change_duty(who, on_call_now, on_call) INTO decided FROM doctor WHERE id = who;
	IF decided <> 'stayed' THEN
		UPDATE on_call_count SET n = n + CASE decided WHEN 'left' THEN -1 ELSE 1 END;
	END IF;
	RETURN decided;
END
$$;
