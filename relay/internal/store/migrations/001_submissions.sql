-- The row is the truth: state, due time, lease and epoch.
CREATE TABLE submissions (
    id            uuid PRIMARY KEY,
    pool          bytea NOT NULL CHECK (length(pool) = 32),
    kind          text NOT NULL CHECK (kind IN ('transfer', 'withdrawal', 'swap')),
    state         text NOT NULL CHECK (state IN ('pending', 'processing', 'completed', 'failed')),
    content_hash  bytea NOT NULL CHECK (length(content_hash) = 32),
    proof         bytea NOT NULL CHECK (length(proof) = 256),
    proof_sign    text NOT NULL,
    public_inputs bytea NOT NULL CHECK (length(public_inputs) = 264),
    recipient     bytea CHECK (length(recipient) = 32),
    notes         bytea[] NOT NULL DEFAULT '{}',

    -- due_at is when the row next needs a worker; null when nothing is left to do.
    due_at        timestamptz,
    lease_owner   uuid,
    lease_until   timestamptz,
    epoch         bigint NOT NULL DEFAULT 0,
    tries         integer NOT NULL DEFAULT 0,
    hold_reason   text,

    signature     bytea,
    slot          bigint,
    leaf_indices  bigint[],
    root          bytea,
    finalized     boolean NOT NULL DEFAULT false,
    rolled_back   boolean NOT NULL DEFAULT false,
    error_code    text,
    error_message text,
    error_fields  jsonb,

    created_at    timestamptz NOT NULL DEFAULT now(),
    completed_at  timestamptz,

    CHECK ((state = 'failed') = (error_code IS NOT NULL)),
    CHECK (state <> 'completed' OR signature IS NOT NULL)
);

CREATE INDEX submissions_due ON submissions (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX submissions_open ON submissions (state, created_at) WHERE state IN ('pending', 'processing');

-- At most one live submission a nullifier, across all pods. Rows of landed
-- submissions outlive the submissions, so there is no foreign key.
CREATE TABLE reservations (
    pool          bytea NOT NULL,
    nullifier     bytea NOT NULL CHECK (length(nullifier) = 32),
    submission_id uuid NOT NULL,
    PRIMARY KEY (pool, nullifier)
);
CREATE INDEX reservations_submission ON reservations (submission_id);

-- Committed before the first send; sent again byte for byte.
CREATE TABLE attempts (
    signature               bytea PRIMARY KEY CHECK (length(signature) = 64),
    submission_id           uuid NOT NULL REFERENCES submissions (id) ON DELETE CASCADE,
    epoch                   bigint NOT NULL,
    raw                     bytea NOT NULL,
    fee_payer               bytea NOT NULL,
    blockhash               bytea NOT NULL,
    blockhash_slot          bigint NOT NULL,
    last_valid_block_height bigint NOT NULL,
    dead                    boolean NOT NULL DEFAULT false,
    created_at              timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX attempts_submission ON attempts (submission_id);

-- Keys are stored hashed; content_hash tells a replay from a reuse.
CREATE TABLE idempotency_keys (
    key_hash      bytea PRIMARY KEY CHECK (length(key_hash) = 32),
    content_hash  bytea NOT NULL,
    submission_id uuid NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- Which sign of A the program of a verifying key takes, learnt only from a
-- Transact that is finalized on the chain.
CREATE TABLE proof_signs (
    key_hash   bytea PRIMARY KEY CHECK (length(key_hash) = 32),
    sign       text NOT NULL CHECK (sign IN ('plain', 'negated')),
    signature  bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Keys are sealed to the compliance officer; no wallet and no address is kept.
CREATE TABLE viewing_keys (
    identifier  bytea PRIMARY KEY CHECK (length(identifier) = 32),
    sealed      bytea NOT NULL,
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    key_id      text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now()
);

---- create above / drop below ----

DROP TABLE viewing_keys, proof_signs, idempotency_keys, attempts, reservations, submissions;
