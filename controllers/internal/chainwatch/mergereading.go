package chainwatch

import (
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

// keepReading updates the reading with an answer. A change for the worse counts only when
// a second check confirms it, because one endpoint may fail for a moment.
func (p *pool) keepReading(a answer, now time.Time) {
	if !a.ok {
		p.failures++
		if p.failures == 1 {
			p.failedAt = now
		}
		// Without an earlier reading, the first failure counts at once.
		if p.reading.UnavailableSince.IsZero() && (p.failures > 1 || p.reading.At.IsZero()) {
			p.reading.UnavailableSince, p.reading.Cause = p.failedAt, a.cause
		}
		return
	}
	p.failures = 0
	p.reading.UnavailableSince, p.reading.Cause = time.Time{}, ""
	before, _, _ := p.reading.Report.Summary()
	after, _, _ := a.report.Summary()
	if before == poolcheck.OK && after != poolcheck.OK && !p.unconfirmed {
		p.unconfirmed = true
		return
	}
	p.unconfirmed = false
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
