-- What fee payers paid in blocks that a process read for the commitment index, for the ledgers of all. The newest
-- slots are kept. A block may be of a fork. The content may be lost in a crash: then endpoints are asked.
-- An addition: relays of the previous release do not use the table.
CREATE UNLOGGED TABLE block_payments (
    payer bytea NOT NULL,
    slot bigint NOT NULL,
    payments json NOT NULL,
    PRIMARY KEY (payer, slot)
);
CREATE INDEX block_payments_by_slot ON block_payments (slot);

---- create above / drop below ----

DROP TABLE block_payments;
