-- Which server takes writes: an epoch that every promotion raises.
--
-- Guarantee: a server that was promoted is of a higher epoch than the one that it was copied from, by the first time that it is
-- asked. PostgreSQL keeps no such order: a primary that was left behind starts again, as it is, and takes writes; both
-- control files may still say timeline 1 then.
--
-- Lock order: the epoch's row, nothing else.
--
-- Why the timeline: each promotion begins a new one, and no other event does. The row has the timeline that it was written
-- on, and comes to a standby with the rest; where the two differ the server was promoted since. Two standbys that are
-- promoted beside each other would come to one epoch.

CREATE TABLE server_epoch (
	id integer PRIMARY KEY CHECK (id = 1),
	epoch bigint NOT NULL,
	timeline bigint NOT NULL
);

-- Of what is written now; the control file has that of the last checkpoint. Not on a standby.
CREATE OR REPLACE FUNCTION server_timeline() RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
	SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
$$;

INSERT INTO server_epoch (id, epoch, timeline) SELECT 1, 1, server_timeline();

-- To be asked before the first connection to a server is handed out: may it be, when the highest epoch known is p_highest?
CREATE OR REPLACE FUNCTION server_admit(p_highest bigint, OUT epoch bigint, OUT timeline bigint, OUT admitted boolean)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	SELECT e.epoch, e.timeline INTO STRICT epoch, timeline FROM server_epoch e WHERE e.id = 1 FOR UPDATE;
	IF timeline <> server_timeline() THEN
		UPDATE server_epoch e SET epoch = e.epoch + 1, timeline = server_timeline() WHERE e.id = 1
			RETURNING e.epoch, e.timeline INTO STRICT epoch, timeline;
	END IF;
	admitted := epoch >= p_highest;
END
$$;
