-- The row is the truth: state, due time, lease and epoch. It is updated a few
-- times in its life, so it is narrow, what never changes is in requests, and no
-- index names a column that a beat, a hold or a try changes.
CREATE TABLE submissions (
    id            uuid PRIMARY KEY,
    -- job_id counts up as submissions are accepted. It orders those of one root,
    -- and is what GET /backlog lists: ids open /status, these do not.
    job_id        bigint GENERATED ALWAYS AS IDENTITY,
    pool          bytea NOT NULL CHECK (length(pool) = 32),
    kind          text NOT NULL CHECK (kind IN ('transfer', 'withdrawal', 'swap')),
    state         text NOT NULL CHECK (state IN ('pending', 'processing', 'completed', 'failed')),
    content_hash  bytea NOT NULL CHECK (length(content_hash) = 32),
    -- root_seq is the number of leaves when the proof's root was the newest: the
    -- lower, the sooner the root leaves the ring. 0 when not known.
    root_seq      bigint NOT NULL DEFAULT 0,

    -- due_at is when the row next needs a worker; null when nothing is left to do.
    due_at        timestamptz,
    -- lease_owner holds the row as long as its row in workers lives.
    lease_owner   uuid,
    -- epoch counts the leases, given and taken away: every write names it.
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
    CHECK (state <> 'completed' OR signature IS NOT NULL),
    CHECK (NOT finalized OR state = 'completed'),
    CHECK (due_at IS NOT NULL OR state = 'failed' OR finalized),
    CHECK (lease_owner IS NULL OR (due_at IS NOT NULL AND state IN ('processing', 'completed')))
) WITH (
    -- Room on the page for the versions to come, and vacuum as soon as a few
    -- thousand are dead rather than at a fifth of the table.
    fillfactor = 75,
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 1000
);

-- All indexes but the key and the last are of rows under way, which are few
-- however many have been finished.
--
-- What has not landed, most urgent first: counted for the backlog and for admission.
CREATE INDEX submissions_open ON submissions (root_seq, job_id) WHERE state IN ('pending', 'processing');
-- What a worker may take up, most urgent first. due_at is there to be filtered
-- by: thousands that wait for funds cost a claim no look at their rows.
CREATE INDEX submissions_due ON submissions (root_seq, job_id, due_at)
    WHERE state IN ('pending', 'processing') AND lease_owner IS NULL;
-- Landings that nobody watches.
CREATE INDEX submissions_landed ON submissions (job_id, due_at)
    WHERE state = 'completed' AND NOT finalized AND lease_owner IS NULL;
-- What is held, by holder.
CREATE INDEX submissions_leased ON submissions (lease_owner) WHERE lease_owner IS NOT NULL;
-- What retention may delete, oldest first.
CREATE INDEX submissions_finished ON submissions (completed_at) WHERE state = 'failed' OR finalized;

-- What the client asked for: written with the submission, deleted with it,
-- never updated. It has no foreign key, which would lock the submission for
-- each insert: the statement that deletes submissions deletes these too.
CREATE TABLE requests (
    submission_id uuid PRIMARY KEY,
    proof         bytea NOT NULL CHECK (length(proof) = 256),
    proof_sign    text NOT NULL,
    public_inputs bytea NOT NULL CHECK (length(public_inputs) = 264),
    recipient     bytea CHECK (length(recipient) = 32),
    notes         bytea[] NOT NULL DEFAULT '{}',
    -- spends are the nullifiers that the submission reserved.
    spends        bytea[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- At most one live submission a nullifier, across all pods. Rows of landed
-- submissions outlive the submissions, so there is no foreign key; and because
-- they stay for ever, no second index.
CREATE TABLE reservations (
    pool          bytea NOT NULL,
    nullifier     bytea NOT NULL CHECK (length(nullifier) = 32),
    submission_id uuid NOT NULL,
    PRIMARY KEY (pool, nullifier)
);

-- Committed before the first send; sent again byte for byte. No foreign key, as
-- for requests.
CREATE TABLE attempts (
    signature               bytea PRIMARY KEY CHECK (length(signature) = 64),
    submission_id           uuid NOT NULL,
    epoch                   bigint NOT NULL,
    raw                     bytea NOT NULL,
    fee_payer               bytea NOT NULL,
    blockhash               bytea NOT NULL,
    blockhash_slot          bigint NOT NULL,
    last_valid_block_height bigint NOT NULL,
    -- cost is what it takes from the payer when it lands, in lamports; paid what
    -- it took although it is dead: the fee of one that landed and failed.
    cost                    bigint NOT NULL CHECK (cost >= 0),
    paid                    bigint NOT NULL DEFAULT 0 CHECK (paid >= 0),
    -- refused: preflight refused it for good, so it is not sent again.
    refused                 boolean NOT NULL DEFAULT false,
    -- dead: it can not land any more.
    dead                    boolean NOT NULL DEFAULT false,
    created_at              timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX attempts_submission ON attempts (submission_id);

-- The processes that hold leases. A row lives until its time is over, and with
-- it all leases of its process: one write renews them all.
CREATE TABLE workers (
    id          uuid PRIMARY KEY,
    until       timestamptz NOT NULL,
    -- hold_reason says why the process takes nothing up.
    hold_reason text,
    started_at  timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The newest slot at which any process has seen a pool's tree change: a node that
-- shows an older one is behind, and cannot tell that a root is stale.
CREATE TABLE sightings (
    pool bytea PRIMARY KEY CHECK (length(pool) = 32),
    slot bigint NOT NULL,
    -- seen_at is when the slot was told of: one that was wrong is not kept for ever.
    seen_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- Keys are stored hashed; content_hash tells a replay from a reuse.
CREATE TABLE idempotency_keys (
    key_hash      bytea PRIMARY KEY CHECK (length(key_hash) = 32),
    content_hash  bytea NOT NULL,
    submission_id uuid NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now()
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- Called when an insert finds a nullifier or key taken: the statement that
-- accepts a submission is then undone whole. A violated key would do the same,
-- and write the nullifier into the server's log.
CREATE FUNCTION relaypool_overlap() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'another submission reserved first' USING ERRCODE = 'RP409';
END
$$;

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

DROP TABLE viewing_keys, proof_signs, idempotency_keys, sightings, workers, attempts, reservations, requests, submissions;
DROP FUNCTION relaypool_overlap();
