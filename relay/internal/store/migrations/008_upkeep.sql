-- When each job of the fleet's upkeep began last, by which one process does it once a
-- period.
CREATE TABLE upkeep (
    job      text PRIMARY KEY,
    began_at timestamptz NOT NULL
);

---- create above / drop below ----

DROP TABLE upkeep;
