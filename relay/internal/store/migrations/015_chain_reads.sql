-- What a process read from the chain for all processes of the fleet. value is what it read at slot, after
-- read_at. The content may be lost in a crash: then it is read again.
-- An addition: relays of the previous release do not use the table; each reads for itself.
CREATE UNLOGGED TABLE chain_reads (
    name text PRIMARY KEY,
    value bytea NOT NULL,
    slot bigint NOT NULL,
    read_at timestamptz NOT NULL
);

---- create above / drop below ----

DROP TABLE chain_reads;
