-- Second legs, settlements before, are rows of kind swap_execution, and a sweep has
-- ended_at. This is no mere addition: a relay of the release before goes on with all else,
-- but claims no second leg, which then waits for a newer relay.
--
-- Builds after that release had both names in 004 and 005, so a database may have them
-- before this.
--
-- The constraints are NOT VALID as in 004; the rows that they are about are updated here.
ALTER TABLE submissions DROP CONSTRAINT submissions_kind_check, DROP CONSTRAINT submissions_parent_check;
UPDATE submissions SET kind = 'swap_execution' WHERE kind = 'settlement';
ALTER TABLE submissions
    ADD CONSTRAINT submissions_kind_check CHECK (kind IN ('transfer', 'withdrawal', 'swap', 'swap_execution')) NOT VALID,
    ADD CONSTRAINT submissions_parent_check CHECK (
        (kind = 'swap_execution') = (parent IS NOT NULL) AND (kind = 'swap_execution') = (root_seq = 9223372036854775807)) NOT VALID;
DROP INDEX submissions_settling;
CREATE INDEX submissions_second_legs ON submissions (due_at, job_id)
    WHERE kind = 'swap_execution' AND state IN ('pending', 'processing') AND lease_owner IS NULL;

-- A relay of the release before inserts a settlement in the statement that completes up to
-- 256 submissions: without this, the check would fail them all, transfers too, for ever.
CREATE FUNCTION relaypool_second_leg() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.kind := 'swap_execution';
    RETURN NEW;
END
$$;
CREATE TRIGGER submissions_second_leg BEFORE INSERT ON submissions
    FOR EACH ROW WHEN (NEW.kind = 'settlement') EXECUTE FUNCTION relaypool_second_leg();

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'sweeps'::regclass AND attname = 'settled_at' AND NOT attisdropped) THEN
        ALTER TABLE sweeps RENAME COLUMN settled_at TO ended_at;
    END IF;
END
$$;

---- create above / drop below ----

ALTER TABLE sweeps RENAME COLUMN ended_at TO settled_at;
DROP TRIGGER IF EXISTS submissions_second_leg ON submissions;
DROP FUNCTION relaypool_second_leg();
ALTER TABLE submissions DROP CONSTRAINT submissions_kind_check, DROP CONSTRAINT submissions_parent_check;
UPDATE submissions SET kind = 'settlement' WHERE kind = 'swap_execution';
ALTER TABLE submissions
    ADD CONSTRAINT submissions_kind_check CHECK (kind IN ('transfer', 'withdrawal', 'swap', 'settlement')) NOT VALID,
    ADD CONSTRAINT submissions_parent_check CHECK (
        (kind = 'settlement') = (parent IS NOT NULL) AND (kind = 'settlement') = (root_seq = 9223372036854775807)) NOT VALID;
DROP INDEX submissions_second_legs;
CREATE INDEX submissions_settling ON submissions (due_at, job_id)
    WHERE kind = 'settlement' AND state IN ('pending', 'processing') AND lease_owner IS NULL;
