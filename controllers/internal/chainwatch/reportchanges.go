package chainwatch

import (
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

const (
	// A change of a tree is reported from leavesChange leaves on, or from 1/leavesShare
	// of the leaves last reported if that is more.
	leavesChange = 64
	leavesShare  = 100
	// A change of a balance is reported from 1/balanceShare of it on: 5 %.
	balanceShare = 20
	// A change of a runway is reported from 1/runwayShare of it on: 20 %.
	runwayShare = 5
)

// reported is what a status shows of a reading, as of the last event for the reconciler.
type reported struct {
	state       poolcheck.State
	reason      poolcheck.Reason
	message     string
	leaves      uint64
	leavesKnown bool
	payers      map[solana.PublicKey]reportedPayer
}

type reportedPayer struct {
	lamports  uint64
	runway    time.Duration
	hasRunway bool // the runway is known
}

func reportedOf(r *Reading) reported {
	s := reported{payers: make(map[solana.PublicKey]reportedPayer, len(r.Payers))}
	s.state, s.reason, s.message = r.Pool()
	s.leaves, s.leavesKnown = r.Report.NextIndex()
	for key, p := range r.Payers {
		runway, known := p.Runway()
		s.payers[key] = reportedPayer{p.Lamports, runway, known}
	}
	return s
}

// differs reports whether next differs from s enough for an event. Any change of the
// pool's state is enough; figures must change by the shares above.
func (s *reported) differs(next *reported, thresholds []uint64) bool {
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

func (p reportedPayer) differs(next reportedPayer, thresholds []uint64) bool {
	if change := difference(p.lamports, next.lamports); change > 0 && change >= p.lamports/balanceShare {
		return true
	}
	for _, t := range thresholds {
		if (p.lamports < t) != (next.lamports < t) {
			return true
		}
	}
	if p.hasRunway != next.hasRunway {
		return true
	}
	change := max(p.runway, next.runway) - min(p.runway, next.runway)
	return change > 0 && change >= p.runway/runwayShare
}

func difference(a, b uint64) uint64 { return max(a, b) - min(a, b) }
