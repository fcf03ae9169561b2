package gather

import (
	"github.com/relaypool/relaypool/hack/drill/canary"
	"github.com/relaypool/relaypool/hack/load"
)

// Canaries are the parts of every request that must stay secret.
func Canaries(records []load.Record) *canary.Set {
	set := canary.New()
	for i := range records {
		for k := range records[i].Requests {
			q := &records[i].Requests[k]
			for n := range q.Proofs {
				set.Add("proof", q.Proofs[n][:])
			}
			if k > 0 {
				continue // the other fields are the same for each root
			}
			for n := range q.Inputs.Nullifiers {
				set.Add("nullifier", q.Inputs.Nullifiers[n][:])
				set.Add("commitment", q.Inputs.Commitments[n][:])
			}
			set.Add("recipient", q.Recipient[:])
			if q.Swap != nil {
				set.Add("token account", q.Swap.Terms.RecipientATA[:])
				set.Add("swap state", q.Swap.State[:])
			}
			for _, note := range q.Notes {
				set.Add("note", note)
			}
		}
	}
	return set
}
