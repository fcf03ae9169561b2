package swap

// routeWidth limits a route. accounts is about how many accounts the route may name; 0 is no
// limit. With direct, the route uses a single market.
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
		s.remember(r, func(k *swapNotes) { k.level = 0 })
		return s.deferral(r, ReasonRouteTooLarge, nil)
	}
	r.level++
	r.quote, r.facts.quote = nil, quoteUnread
	if s.routers == 1 { // another router may have a route of full width that fits
		s.remember(r, func(k *swapNotes) { k.level = r.level })
	}
	return nil
}
