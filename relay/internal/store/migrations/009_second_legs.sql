-- Second legs, settlements before, are rows of kind swap_execution, and a sweep has
-- ended_at. This is no mere addition: a relay of the release before completes no swap's
-- first leg beside it, which then waits for a newer relay.
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

ALTER TABLE sweeps RENAME COLUMN settled_at TO ended_at;

---- create above / drop below ----

ALTER TABLE sweeps RENAME COLUMN ended_at TO settled_at;
ALTER TABLE submissions DROP CONSTRAINT submissions_kind_check, DROP CONSTRAINT submissions_parent_check;
UPDATE submissions SET kind = 'settlement' WHERE kind = 'swap_execution';
ALTER TABLE submissions
    ADD CONSTRAINT submissions_kind_check CHECK (kind IN ('transfer', 'withdrawal', 'swap', 'settlement')) NOT VALID,
    ADD CONSTRAINT submissions_parent_check CHECK (
        (kind = 'settlement') = (parent IS NOT NULL) AND (kind = 'settlement') = (root_seq = 9223372036854775807)) NOT VALID;
DROP INDEX submissions_second_legs;
CREATE INDEX submissions_settling ON submissions (due_at, job_id)
    WHERE kind = 'settlement' AND state IN ('pending', 'processing') AND lease_owner IS NULL;
