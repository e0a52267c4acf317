-- Says that the source is being read: advisory lock 4711, which the session keeps until it ends. True for every row.

CREATE FUNCTION lab.looked() RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	PERFORM pg_advisory_lock_shared(4711);
	RETURN true;
END
$$;
