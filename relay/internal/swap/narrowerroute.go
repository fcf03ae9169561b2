package swap

// routeWidth limits a route. accounts is roughly the largest number of accounts that the route
// may name; 0 is no limit. If direct is set, the route uses a single market.
type routeWidth struct {
	accounts int
	direct   bool
}

// routeWidths are tried in this order: a route through fewer accounts has a worse price,
// but a smaller transaction.
func routeWidths() []routeWidth {
	return []routeWidth{{}, {accounts: 40}, {accounts: 28}, {accounts: 20}, {accounts: 20, direct: true}}
}

// retryNarrower moves the swap to the next narrower width, or defers the swap when there is
// none.
func (s *Planner) retryNarrower(r *snapshot) error {
	if r.level+1 >= len(routeWidths()) {
		// The next pass starts with the widest route again: routes change.
		s.remember(r, func(tries *earlierTries) { tries.levels[r.first] = 0 })
		return s.deferral(r, ReasonRouteTooLarge, nil)
	}
	r.level++
	r.quote, r.facts.quote = nil, quoteUnread
	s.remember(r, func(tries *earlierTries) { tries.levels[r.first] = r.level })
	return nil
}
