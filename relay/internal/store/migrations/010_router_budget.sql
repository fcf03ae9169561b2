-- Calls of the swap router are counted over all processes, because the router counts them
-- by API key. used_until is the time until which the calls made so far use up the budget.
-- An addition: a relay of the release before keeps its own count.
CREATE TABLE router_budget (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    used_until timestamptz NOT NULL
);

---- create above / drop below ----

DROP TABLE router_budget;
