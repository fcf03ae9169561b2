package chainwatch

import (
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
)

// keepReading updates the reading with an answer, unless a second check has to confirm the answer.
func (p *pool) keepReading(a answer, now time.Time) {
	if !a.ok {
		p.countFailure(a.cause, now)
		return
	}
	p.failures = 0
	p.reading.UnavailableSince, p.reading.Cause = time.Time{}, ""
	if p.awaitsConfirmation(&a.report) {
		return
	}
	p.reading.Report, p.reading.At = a.report, now
	payers := make(map[solana.PublicKey]Payer, len(p.query.Payers))
	for _, key := range p.query.Payers {
		lamports, read := a.report.Balances[key]
		if !read {
			if old, ok := p.reading.Payers[key]; ok {
				payers[key] = old
			}
			continue
		}
		history := p.history[key]
		if history == nil {
			history = new(balanceHistory)
			p.history[key] = history
		}
		history.add(now, lamports)
		payer := Payer{Lamports: lamports, At: now}
		payer.Spending, payer.SpendingKnown = history.perHour()
		payers[key] = payer
	}
	p.reading.Payers = payers
}

// clone returns a copy, so that two queries never share a history. The copy of nil is empty.
func (b *balanceHistory) clone() *balanceHistory {
	if b == nil {
		return new(balanceHistory)
	}
	c := *b
	c.samples = slices.Clone(b.samples)
	return &c
}
