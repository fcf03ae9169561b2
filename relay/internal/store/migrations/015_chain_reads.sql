-- What a process read from the chain for all processes of the fleet. read_at is by the database's clock, just
-- before the read: the value is at most as old as that. The content may be lost in a crash: then it is read
-- again.
-- An addition: relays of the previous release do not use the table; each reads for itself.
CREATE UNLOGGED TABLE chain_reads (
    name text PRIMARY KEY,
    value bytea NOT NULL,
    read_at timestamptz NOT NULL
);

---- create above / drop below ----

DROP TABLE chain_reads;
