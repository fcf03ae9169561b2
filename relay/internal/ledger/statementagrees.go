package ledger

import "slices"

// agrees reports whether every lamport of the payer is accounted for.
func (p *PayerLine) agrees() bool {
	return p.Gaps == 0 && p.Unexplained == 0 && p.Unknown == 0 && p.Other == 0 && (p.Difference == nil || *p.Difference == 0)
}

// Agrees reports whether every lamport is accounted for: no gap, no unknown transaction,
// nothing unexplained, and no difference to a balance that was read from the chain.
func (s *Statement) Agrees() bool {
	return !slices.ContainsFunc(s.Payers, func(p PayerLine) bool { return !p.agrees() })
}
