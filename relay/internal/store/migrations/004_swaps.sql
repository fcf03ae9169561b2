-- A swap has two legs. The first is a submission like every other; the second,
-- its settlement, is a row of its own in the same table, made when the first
-- lands, so that leases, attempts and outcomes are the same for both.
--
-- Constraints that older rows cannot break are NOT VALID: they hold for what is
-- written, and no table is read from end to end while nobody can write to it.
ALTER TABLE submissions
    ADD COLUMN parent uuid,
    DROP CONSTRAINT submissions_kind_check,
    ADD CONSTRAINT submissions_kind_check CHECK (kind IN ('transfer', 'withdrawal', 'swap', 'settlement')) NOT VALID,
    -- A settlement carries no root: the largest root_seq puts it behind all that
    -- does, and a claim that stops before that never meets one.
    ADD CONSTRAINT submissions_parent_check CHECK (
        (kind = 'settlement') = (parent IS NOT NULL) AND (kind = 'settlement') = (root_seq = 9223372036854775807)) NOT VALID;

-- One settlement a swap, however often its first leg lands.
CREATE UNIQUE INDEX submissions_parent ON submissions (parent) WHERE parent IS NOT NULL;
-- Settlements that a worker may take up, those first that have been due longest.
CREATE INDEX submissions_settling ON submissions (due_at, job_id)
    WHERE kind = 'settlement' AND state IN ('pending', 'processing') AND lease_owner IS NULL;

-- swap_terms are those 72 bytes that TransactSwap has more than Transact; recipient
-- is then the wallet that the lamports go back to.
ALTER TABLE requests ADD COLUMN swap_terms bytea,
    ADD CONSTRAINT requests_swap_terms_check CHECK (length(swap_terms) = 72) NOT VALID;

-- fee is the part of cost that the network takes even when the attempt fails.
ALTER TABLE attempts ADD COLUMN purpose text NOT NULL DEFAULT 'transact', ADD COLUMN fee bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT attempts_purpose_check CHECK (purpose IN ('transact', 'accounts', 'execute', 'refund')) NOT VALID,
    ADD CONSTRAINT attempts_fee_check CHECK (fee >= 0) NOT VALID;

-- Where each swap stands between its legs; id is the settlement's. It is written
-- by who holds the settlement, which is locked first. No foreign key, as for requests.
CREATE TABLE swaps (
    id           uuid PRIMARY KEY,
    phase        text NOT NULL CHECK (phase IN ('funded', 'accounts_ready', 'quoted', 'executed', 'refunded')),
    -- timeout_slot is from when on the swap is refunded; 0 while not known.
    timeout_slot bigint NOT NULL CHECK (timeout_slot >= 0),
    -- ended: no fork can change how it ended, or the first leg will never land.
    ended        boolean NOT NULL DEFAULT false,
    created_at   timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000);
-- What has not ended, in the order in which it times out.
CREATE INDEX swaps_open ON swaps (timeout_slot, created_at, phase) WHERE NOT ended;

-- returned is what came back of rent, which rent is less by: without it a sum that
-- only grows, as a counter has to, could not be told from one that does not.
ALTER TABLE ledger_days ADD COLUMN returned bigint NOT NULL DEFAULT 0;

---- create above / drop below ----

ALTER TABLE ledger_days DROP COLUMN returned;
DROP TABLE swaps;
DELETE FROM submissions WHERE kind = 'settlement';
DROP INDEX submissions_settling, submissions_parent;
ALTER TABLE attempts DROP COLUMN purpose, DROP COLUMN fee;
ALTER TABLE requests DROP COLUMN swap_terms;
ALTER TABLE submissions DROP CONSTRAINT submissions_kind_check, DROP CONSTRAINT submissions_parent_check, DROP COLUMN parent,
    ADD CONSTRAINT submissions_kind_check CHECK (kind IN ('transfer', 'withdrawal', 'swap'));
