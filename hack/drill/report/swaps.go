package report

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/drill/arena"
	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

type swapFigures struct {
	// executed and refunded are the times from the first leg's acceptance to the swap's
	// end, sorted. reachable counts the refunded swaps that could have been executed at
	// the market's usual price.
	executed, refunded []time.Duration
	reachable          int
	// waited counts, for the reachable swaps, the reasons for waiting in the last
	// answer that their clients read.
	waited map[string]int
	// strangers counts the swaps that strangers ended.
	strangers int
	// signed counts the attempts of second legs by purpose.
	signed map[string]int
	// maxDelay is the largest number of slots between a swap's timeout and its end.
	maxDelay uint64
}

func newSwapFigures(o *arena.Outcome) *swapFigures {
	e, f := o.Evidence, &swapFigures{signed: make(map[string]int), waited: make(map[string]int)}
	waits := lastWaits(e)
	net := func(s *verify.Submission) uint64 {
		lamports, _ := e.Fees.Net(s.Inputs.Gross())
		return lamports
	}
	for i := range e.Attempts {
		if purpose := e.Attempts[i].Purpose; purpose != "transact" && purpose != "" {
			f.signed[purpose]++
		}
	}
	ends := verify.ByKey(e.Executions, func(s *verify.Execution) uuid.UUID { return s.Swap })
	landed := verify.ByKey(e.Transactions, func(tx *verify.Transaction) solana.Signature { return tx.Signature })
	fromRelays := verify.ByKey(e.Attempts, func(a *verify.Attempt) solana.Signature { return a.Signature })
	for i := range e.Submissions {
		s := &e.Submissions[i]
		last := ends[s.ID]
		if last == nil || last.State != "completed" {
			continue
		}
		if fromRelays[last.Signature] == nil {
			f.strangers++
		}
		wait := last.CompletedAt.Sub(s.CreatedAt)
		switch last.Phase {
		case string(shieldpool.Executed):
			f.executed = append(f.executed, wait)
		case string(shieldpool.Refunded):
			f.refunded = append(f.refunded, wait)
			if s.Swap != nil && s.Swap.MinOutput <= o.BasePrice(net(s)) {
				f.reachable++
				f.waited[waits[s.ID]]++
			}
		}
		if tx := landed[last.Signature]; tx != nil && last.Timeout > 0 && tx.Slot > last.Timeout {
			f.maxDelay = max(f.maxDelay, tx.Slot-last.Timeout)
		}
	}
	slices.Sort(f.executed)
	slices.Sort(f.refunded)
	return f
}

// lastWaits returns each swap's reason for waiting from the last answer that has one.
func lastWaits(e *verify.Evidence) map[uuid.UUID]string {
	out, at := make(map[uuid.UUID]string), make(map[uuid.UUID]time.Time)
	verify.Each(e.Records, func(_ *load.Record, _ *load.Request, a *load.Answer) {
		if a.Waits != "" && a.At.After(at[a.RequestID]) {
			out[a.RequestID], at[a.RequestID] = a.Waits, a.At
		}
	})
	return out
}

type adder func(name string, value float64, unit string)

func (f *swapFigures) counts(add adder) {
	add("swaps executed", float64(len(f.executed)), "")
	add("swaps refunded", float64(len(f.refunded)), "")
	add("swaps that strangers ended", float64(f.strangers), "")
	add("swaps refunded though the usual price sufficed", float64(f.reachable), "")
	for _, reason := range slices.Sorted(maps.Keys(f.waited)) {
		add("of these, last waited for "+cmp.Or(reason, "no stated reason"), float64(f.waited[reason]), "")
	}
}

func (f *swapFigures) attempts(add adder) {
	for _, purpose := range slices.Sorted(maps.Keys(f.signed)) {
		add("of these, purpose "+purpose, float64(f.signed[purpose]), "")
	}
}

func (f *swapFigures) times(add adder) {
	waitsByName := map[string][]time.Duration{"accepted to tokens": f.executed, "accepted to refund": f.refunded}
	for _, name := range slices.Sorted(maps.Keys(waitsByName)) {
		if waits := waitsByName[name]; len(waits) > 0 {
			add(name+", median", waits[len(waits)/2].Seconds(), "s")
			add(name+", longest", waits[len(waits)-1].Seconds(), "s")
		}
	}
	if len(f.refunded) > 0 {
		add("longest past a swap's timeout", float64(f.maxDelay), "slots")
	}
}
