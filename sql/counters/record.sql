-- What repair remembers, in a schema of its own: which runs there were, and which keys each of them found wrong.
--
-- Guarantee: a key is closed (outcome is not NULL) by the transaction that repaired it, so that a run that stops anywhere
-- repairs what is open and nothing twice. A key is claimed by the lock on its row in drift, and given back by whatever ends
-- the transaction: COMMIT, an error, or the death of the worker. Rows of ended runs stay: they are the history.
--
-- Lock order: rows of drift, then rows of the target in key order.
--
-- Why keys and values are text: one table serves every counter. They are written and read as the counter's own types,
-- whose text form is exact under the settings of the tool's sessions, and of timestamps with time zone in UTC: a key is one text
-- in every run.
--
-- May be run by hand, by a role that may create a schema, for one that may not; it then needs USAGE on the schema, and
-- SELECT, INSERT, UPDATE, DELETE on both tables.

CREATE SCHEMA IF NOT EXISTS counterproof;

CREATE TABLE IF NOT EXISTS counterproof.run (
	run integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
	counter text NOT NULL,
	definition text NOT NULL, -- what the file said; a run is resumed under the same alone
	mode text NOT NULL,
	timezone text NOT NULL DEFAULT current_setting('TimeZone'), -- whoever goes on has it, too: for the file's SQL, and for keys that have times inside, as ranges do
	one_key text, -- repair --id: it says nothing of other keys
	state text NOT NULL DEFAULT 'finding'
		CHECK (state IN ('finding', 'repairing', 'finished', 'superseded')),
	pass integer NOT NULL DEFAULT 1, -- of repairing; another begins when reading again finds more
	started timestamptz NOT NULL DEFAULT clock_timestamp(),
	found timestamptz, -- when the reading that found the keys had its snapshot
	ended timestamptz,
	horizon xid8, -- what this snapshot did not see was written by transactions from here on
	last_seq bigint, -- with an outbox: the last event of this snapshot
	applied_seq bigint, -- and the last of those before which all had taken effect
	scanned bigint,
	correct bigint,
	missing bigint,
	not_checkable bigint,
	orphans bigint,
	zeroed bigint, -- keys whose count would go from something to nothing
	late bigint NOT NULL DEFAULT 0 -- keys written after the snapshot that the last pass looked at
);

CREATE TABLE IF NOT EXISTS counterproof.drift (
	run integer NOT NULL REFERENCES counterproof.run ON DELETE CASCADE,
	place bigint NOT NULL, -- in the order of the keys; those that the last pass found are behind them
	key text[] NOT NULL,
	class smallint NOT NULL, -- 2 over, 3 under, 4 negative, 5 NULL, 6 missing
	stored text,
	actual text,
	pending text,
	diff text, -- stored - actual, what is pending counted as applied
	pass integer NOT NULL DEFAULT 1, -- which found it first
	outcome text CHECK (outcome IN ('updated', 'inserted', 'healed', 'refused', 'busy', 'left')), -- NULL: open
	became text, -- what was written
	remainder text, -- what it was wrong by when it was read again; NULL: right
	changed boolean NOT NULL DEFAULT false, -- was not as found when its chunk came
	repaired timestamptz,
	PRIMARY KEY (run, place)
);

CREATE INDEX IF NOT EXISTS drift_open ON counterproof.drift (run, place) WHERE outcome IS NULL;

-- A run in numbers: each key of it is in one of the columns.
CREATE OR REPLACE VIEW counterproof.summary AS
	SELECT r.run, count(d.place) AS drifted,
			count(*) FILTER (WHERE d.outcome = 'updated') AS updated,
			count(*) FILTER (WHERE d.outcome = 'inserted') AS inserted,
			count(*) FILTER (WHERE d.outcome = 'healed') AS healed,
			count(*) FILTER (WHERE d.outcome IN ('refused', 'busy', 'left')) AS still_drifted,
			count(d.place) FILTER (WHERE d.outcome IS NULL) AS open,
			count(*) FILTER (WHERE d.changed) AS changed,
			count(*) FILTER (WHERE d.pass > 1) AS found_late
		FROM counterproof.run r LEFT JOIN counterproof.drift d USING (run)
		GROUP BY r.run;

-- Since when a key has been wrong: the last whole run that ended with it right, if there is one, and the first after it that found
-- it wrong. What made it wrong came between the two. With an outbox it is one of the events above good_seq, up to bad_seq, if it was
-- an event: those up to good_seq had taken effect when the good run read, and it was right.
CREATE OR REPLACE VIEW counterproof.since AS
	SELECT last.counter, last.key, last.run AS last_run, good.run AS good_run, good.found AS good_at,
			good.applied_seq AS good_seq, bad.run AS bad_run, bad.found AS bad_at, bad.last_seq AS bad_seq,
			bad.stored, bad.actual, bad.diff
		FROM (SELECT r.counter, d.key, max(r.run) AS run
			FROM counterproof.run r JOIN counterproof.drift d USING (run) GROUP BY r.counter, d.key) last
		LEFT JOIN LATERAL (SELECT r.run, r.found, r.applied_seq
			FROM counterproof.run r LEFT JOIN counterproof.drift d ON d.run = r.run AND d.key = last.key
			WHERE r.counter = last.counter AND r.run < last.run AND r.found IS NOT NULL AND
				CASE WHEN d.run IS NULL THEN r.one_key IS NULL ELSE r.state = 'finished' AND d.remainder IS NULL END
			ORDER BY r.run DESC LIMIT 1) good ON true
		JOIN LATERAL (SELECT r.run, r.found, r.last_seq, d.stored, d.actual, d.diff
			FROM counterproof.run r JOIN counterproof.drift d ON d.run = r.run AND d.key = last.key
			WHERE r.counter = last.counter AND r.run > coalesce(good.run, 0)
			ORDER BY r.run LIMIT 1) bad ON true;
