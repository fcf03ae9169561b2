-- A swap's token accounts are made by its execution and by nothing else. The
-- transactions that an earlier release made them with are over, and paid for; it may
-- run on beside this one, but makes no more of them. It may still write the phase
-- accounts_ready, which the next step of this release makes funded.
ALTER TABLE attempts DROP CONSTRAINT attempts_purpose_check;
UPDATE attempts SET dead = true, paid = cost
WHERE submission_id IN (SELECT id FROM swaps WHERE NOT ended) AND purpose = 'accounts' AND NOT dead;
ALTER TABLE attempts ADD CONSTRAINT attempts_purpose_check CHECK (purpose IN ('transact', 'execute', 'refund')) NOT VALID;
UPDATE swaps SET phase = 'funded' WHERE phase = 'accounts_ready' AND NOT ended;

---- create above / drop below ----

ALTER TABLE attempts DROP CONSTRAINT attempts_purpose_check,
    ADD CONSTRAINT attempts_purpose_check CHECK (purpose IN ('transact', 'accounts', 'execute', 'refund')) NOT VALID;
