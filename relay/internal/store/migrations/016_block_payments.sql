-- What the fee payers paid in blocks that a process read for the index, so that the ledger need not call an
-- endpoint for each. The newest slots are kept. A block may be of a fork. The content may be lost in a crash:
-- then endpoints are asked.
-- An addition: relays of the previous release do not use the table.
CREATE UNLOGGED TABLE block_payments (
    slot bigint PRIMARY KEY,
    payments json NOT NULL
);

---- create above / drop below ----

DROP TABLE block_payments;
