-- What the fleet spends, in buckets of five minutes for the caps. Several shards
-- keep processes from waiting for each other's rows.
CREATE TABLE spend_buckets (
    bucket   timestamptz NOT NULL,
    shard    smallint NOT NULL,
    transfer boolean NOT NULL,
    lamports bigint NOT NULL,
    PRIMARY KEY (bucket, shard, transfer)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.05);

-- What each finalized transaction did to a payer's lamports. One transaction may
-- move them from one of our payers to another, so it can have a row for each.
CREATE TABLE ledger (
    signature     bytea NOT NULL CHECK (length(signature) = 64),
    payer         bytea NOT NULL CHECK (length(payer) = 32),
    slot          bigint NOT NULL,
    at            timestamptz NOT NULL,
    submission_id uuid,
    kind          text NOT NULL CHECK (kind IN ('transfer', 'withdrawal', 'swap', 'failed', 'received', 'unknown')),
    fee           bigint NOT NULL,
    priority_fee  bigint NOT NULL,
    rent          bigint NOT NULL,
    other         bigint NOT NULL,
    received      bigint NOT NULL,
    after         bigint NOT NULL,
    PRIMARY KEY (payer, signature)
);
CREATE INDEX ledger_age ON ledger (at);

-- Its sums by day (UTC), written with the rows, which may be deleted once they are old.
CREATE TABLE ledger_days (
    day          date NOT NULL,
    payer        bytea NOT NULL,
    kind         text NOT NULL,
    transactions bigint NOT NULL,
    fee          bigint NOT NULL,
    priority_fee bigint NOT NULL,
    rent         bigint NOT NULL,
    other        bigint NOT NULL,
    received     bigint NOT NULL,
    PRIMARY KEY (day, payer, kind)
);

-- How far each payer's history has been read: all of every slot up to slot.
CREATE TABLE ledger_cursors (
    payer      bytea PRIMARY KEY CHECK (length(payer) = 32),
    -- opening is what the payer held before the ledger's first transaction.
    opening    bigint NOT NULL,
    signature  bytea NOT NULL,
    slot       bigint NOT NULL,
    after      bigint NOT NULL,
    -- gaps counts places where history is missing, and missing what they brought.
    gaps       bigint NOT NULL DEFAULT 0,
    missing    bigint NOT NULL DEFAULT 0,
    -- checked_at is when all that was finalized had been read.
    checked_at timestamptz
);

---- create above / drop below ----

DROP TABLE ledger_cursors, ledger_days, ledger, spend_buckets;
