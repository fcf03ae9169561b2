-- lane is the service that an attempt pays a tip to, when it succeeds; '' and 0 for none. The
-- ledger's tip is what was paid. A relay of the release before pays no tips, and would count
-- those of this release as other costs.
ALTER TABLE attempts ADD COLUMN lane text NOT NULL DEFAULT '', ADD COLUMN tip bigint NOT NULL DEFAULT 0;
-- For relay lanes, which reads the attempts of the last hours.
CREATE INDEX attempts_age ON attempts USING brin (created_at);
ALTER TABLE ledger ADD COLUMN tip bigint NOT NULL DEFAULT 0;
ALTER TABLE ledger_days ADD COLUMN tip bigint NOT NULL DEFAULT 0;

---- create above / drop below ----

ALTER TABLE ledger_days DROP COLUMN tip;
ALTER TABLE ledger DROP COLUMN tip;
DROP INDEX attempts_age;
ALTER TABLE attempts DROP COLUMN lane, DROP COLUMN tip;
