-- Leaves in the tree's order. Those below published have a root that the chain confirmed.
CREATE TABLE commitments (
    pool       bytea NOT NULL,
    leaf_index bigint NOT NULL,
    commitment bytea NOT NULL CHECK (length(commitment) = 32),
    slot       bigint NOT NULL,
    PRIMARY KEY (pool, leaf_index)
);
CREATE INDEX commitments_by_value ON commitments (pool, commitment);

-- How far the index has read: all of every slot up to slot. The generation
-- changes whenever leaves are taken back.
CREATE TABLE commitment_index (
    pool       bytea PRIMARY KEY,
    leaves     bigint NOT NULL DEFAULT 0,
    published  bigint NOT NULL DEFAULT 0 CHECK (published <= leaves),
    slot       bigint NOT NULL DEFAULT 0,
    generation bigint NOT NULL DEFAULT 0
);

---- create above / drop below ----

DROP TABLE commitment_index, commitments;
