package chainwatch

import (
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

const (
	// The number of a tree's leaves is reported again when it has changed by leavesChange, or by
	// 1/leavesShare of the last reported number, whichever is more.
	leavesChange = 64
	leavesShare  = 100
	// A balance is reported again when it has changed by 1/balanceShare (5 %) of the last
	// reported balance.
	balanceShare = 20
	// A runway is reported again when it has changed by 1/runwayShare (20 %) of the last
	// reported runway.
	runwayShare = 5
)

// excerpt is the part of a reading that a status shows.
type excerpt struct {
	state       poolcheck.State
	reason      poolcheck.Reason
	message     string
	leaves      uint64
	leavesKnown bool
	payers      map[solana.PublicKey]payerExcerpt
}

type payerExcerpt struct {
	lamports    uint64
	runway      time.Duration
	runwayKnown bool
}

func excerptOf(r *Reading) excerpt {
	s := excerpt{payers: make(map[solana.PublicKey]payerExcerpt, len(r.Payers))}
	s.state, s.reason, s.message = r.PoolState()
	s.leaves, s.leavesKnown = r.Report.NextIndex()
	for key, p := range r.Payers {
		runway, known := p.Runway()
		s.payers[key] = payerExcerpt{p.Lamports, runway, known}
	}
	return s
}

// differs reports whether next differs from s enough for an event. Any change of the
// pool's state is enough. Figures must change by the shares above, or cross a threshold.
func (s *excerpt) differs(next *excerpt, thresholds []uint64) bool {
	if s.state != next.state || s.reason != next.reason || s.message != next.message || s.leavesKnown != next.leavesKnown {
		return true
	}
	if difference(s.leaves, next.leaves) >= max(leavesChange, s.leaves/leavesShare) {
		return true
	}
	if len(s.payers) != len(next.payers) {
		return true
	}
	for key, p := range next.payers {
		before, known := s.payers[key]
		if !known || before.differs(p, thresholds) {
			return true
		}
	}
	return false
}

func (p payerExcerpt) differs(next payerExcerpt, thresholds []uint64) bool {
	if change := difference(p.lamports, next.lamports); change > 0 && change >= p.lamports/balanceShare {
		return true
	}
	for _, t := range thresholds {
		if (p.lamports < t) != (next.lamports < t) {
			return true
		}
	}
	if p.runwayKnown != next.runwayKnown {
		return true
	}
	change := max(p.runway, next.runway) - min(p.runway, next.runway)
	return change > 0 && change >= p.runway/runwayShare
}

func difference(a, b uint64) uint64 { return max(a, b) - min(a, b) }
