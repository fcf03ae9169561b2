-- What the Merkle tree needs to go on after the leaf last_leaf: a node of each level. A relay that
-- starts hashes only the leaves after the newest checkpoint. A checkpoint goes with its last leaf,
-- also when a relay of the release before removes leaves; such a relay writes no checkpoints.
CREATE TABLE commitment_checkpoints (
    pool      bytea NOT NULL,
    last_leaf bigint NOT NULL,
    frontier  bytea NOT NULL CHECK (length(frontier) = 1024),
    PRIMARY KEY (pool, last_leaf),
    FOREIGN KEY (pool, last_leaf) REFERENCES commitments (pool, leaf_index) ON DELETE CASCADE
);

---- create above / drop below ----

DROP TABLE commitment_checkpoints;
