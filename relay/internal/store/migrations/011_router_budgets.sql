-- Each of several swap routers has a budget of its own, by the router's name.
-- An addition: a relay of the release before uses router_budget, which a later migration drops;
-- while both run, together they may make twice the calls.
CREATE TABLE router_budgets (
    router text PRIMARY KEY,
    used_until timestamptz NOT NULL
);

---- create above / drop below ----

DROP TABLE router_budgets;
