package report

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/drill/account"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// swapFigures are what became of swaps.
type swapFigures struct {
	// executed and refunded are the times from the first leg's acceptance to the
	// end, sorted; reachable counts those of the refunded that a market could
	// have executed.
	executed, refunded []time.Duration
	reachable          int
	// signed counts the attempts of second legs by purpose.
	signed map[string]int
	// latest is how many slots past its timeout a swap ended that did so last.
	latest uint64
}

func swapsOf(e *account.Evidence) *swapFigures {
	f := &swapFigures{signed: make(map[string]int)}
	for i := range e.Attempts {
		if purpose := e.Attempts[i].Purpose; purpose != "transact" && purpose != "" {
			f.signed[purpose]++
		}
	}
	unreachable := make(map[shieldpool.PublicInputs]bool)
	for i := range e.Records {
		for _, q := range e.Records[i].Requests {
			unreachable[q.Inputs] = q.Swap != nil && q.Swap.Unreachable
		}
	}
	ends := make(map[uuid.UUID]*account.Settlement, len(e.Settlements))
	slots := make(map[string]uint64, len(e.Transactions))
	for i := range e.Settlements {
		ends[e.Settlements[i].Swap] = &e.Settlements[i]
	}
	for i := range e.Transactions {
		slots[e.Transactions[i].Signature.String()] = e.Transactions[i].Slot
	}
	for i := range e.Submissions {
		s := &e.Submissions[i]
		last := ends[s.ID]
		if last == nil || last.State != "completed" {
			continue
		}
		wait := last.CompletedAt.Sub(s.CreatedAt)
		switch last.Phase {
		case string(shieldpool.Executed):
			f.executed = append(f.executed, wait)
		case string(shieldpool.Refunded):
			f.refunded = append(f.refunded, wait)
			if !unreachable[s.Inputs] {
				f.reachable++
			}
		}
		if slot := slots[last.Signature.String()]; last.Timeout > 0 && slot > last.Timeout {
			f.latest = max(f.latest, slot-last.Timeout)
		}
	}
	slices.Sort(f.executed)
	slices.Sort(f.refunded)
	return f
}
