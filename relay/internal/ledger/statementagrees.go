package ledger

import (
	"slices"
)

// agrees reports whether every lamport of the payer is accounted for.
func (p *PayerLine) agrees() bool {
	return p.Gaps == 0 && p.Unexplained == 0 && p.Unknown == 0 && p.Other == 0 && (p.Difference == nil || *p.Difference == 0)
}

// Agrees reports whether every lamport is accounted for: no gap, no unknown transaction,
// nothing unexplained, and no difference to a balance that was read from the chain.
func (s *Statement) Agrees() bool {
	return !slices.ContainsFunc(s.Payers, func(p PayerLine) bool { return !p.agrees() })
}

// verdict says whether the figures agree and, if they do not, what to do.
func (s *Statement) verdict() string {
	var gaps, unknown, pending bool
	for i := range s.Payers {
		p := &s.Payers[i]
		gaps = gaps || p.Gaps > 0 || p.Unexplained != 0
		unknown = unknown || p.Unknown > 0 || p.Other != 0
		pending = pending || p.Difference != nil && *p.Difference != 0
	}
	switch {
	case len(s.Payers) == 0:
		return "The ledger is empty: it starts when relay serve finds the first finalized transaction of a fee payer."
	case unknown:
		return "Does not agree: a fee payer paid for transactions that the relay did not make. See the relay's log for the signatures. They are expected for payments later than the moment to which a database was restored. Otherwise, if none of your people sent them, somebody else has the key: replace it."
	case gaps:
		return "Does not agree: history is missing. An endpoint with the role archive might have had it."
	case pending:
		return "Agrees up to the last transaction that was read; the difference comes from transactions that are not final or not read yet. Run it again in a minute."
	default:
		return "Agrees: every lamport is accounted for."
	}
}
