-- Transactions by which relay sweep moves lamports from one key of the operator's
-- to another when keys are rotated. Committed before the first send; sent again
-- byte for byte. Rows are few and stay for good: the ledger knows the
-- transactions by them, however late it reads a key's history.
CREATE TABLE sweeps (
    signature               bytea PRIMARY KEY CHECK (length(signature) = 64),
    step                    text NOT NULL CHECK (step IN ('fund', 'all')),
    -- payer signs, pays the fee, and is where the lamports come from.
    payer                   bytea NOT NULL CHECK (length(payer) = 32),
    recipients              bytea[] NOT NULL,
    lamports                bigint[] NOT NULL,
    fee                     bigint NOT NULL CHECK (fee >= 0),
    raw                     bytea NOT NULL,
    blockhash               bytea NOT NULL,
    blockhash_slot          bigint NOT NULL,
    last_valid_block_height bigint NOT NULL,
    -- open: it may land. landed and failed are finalized; expired can never land.
    state                   text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'landed', 'failed', 'expired')),
    slot                    bigint,
    created_at              timestamptz NOT NULL DEFAULT now(),
    settled_at              timestamptz,
    CHECK (cardinality(recipients) = cardinality(lamports) AND cardinality(recipients) > 0),
    CHECK ((state = 'open') = (settled_at IS NULL)),
    CHECK ((slot IS NOT NULL) = (state IN ('landed', 'failed')))
);
-- At most one of a payer may land at any time: what the next one moves is worked
-- out from what this one left.
CREATE UNIQUE INDEX sweeps_open ON sweeps (payer) WHERE state = 'open';

-- moved is what a sweep took from the payer, below zero what it brought.
ALTER TABLE ledger ADD COLUMN moved bigint NOT NULL DEFAULT 0,
    DROP CONSTRAINT ledger_kind_check,
    ADD CONSTRAINT ledger_kind_check CHECK (kind IN ('transfer', 'withdrawal', 'swap', 'sweep', 'failed', 'received', 'unknown')) NOT VALID;
ALTER TABLE ledger_days ADD COLUMN moved bigint NOT NULL DEFAULT 0;

---- create above / drop below ----

ALTER TABLE ledger_days DROP COLUMN moved;
DELETE FROM ledger WHERE kind = 'sweep';
ALTER TABLE ledger DROP COLUMN moved, DROP CONSTRAINT ledger_kind_check,
    ADD CONSTRAINT ledger_kind_check CHECK (kind IN ('transfer', 'withdrawal', 'swap', 'failed', 'received', 'unknown'));
DROP TABLE sweeps;
