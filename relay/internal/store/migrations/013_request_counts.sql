-- How many requests each client made in a minute, over all processes. client is a hash of the minute
-- and of the client's address or its API key's name, keyed with a secret that is not in the database.
-- Retention deletes counts that are older than five minutes. They may be lost in a crash.
-- An addition: relays of the previous release do not use the table; they count in memory.
CREATE UNLOGGED TABLE request_counts (
    started timestamptz NOT NULL,
    client bytea NOT NULL,
    requests integer NOT NULL,
    PRIMARY KEY (started, client)
);

---- create above / drop below ----

DROP TABLE request_counts;
