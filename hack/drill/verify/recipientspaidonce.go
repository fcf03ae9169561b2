package verify

import (
	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// recipientsPaid computes each recipient's share from the completed submissions
// and compares it with the change of the balance: fresh recipients have no other
// income. The wallet of a swap gets lamports only by its refund.
func recipientsPaid(e *Evidence, r *Result) {
	due := make(map[solana.PublicKey]int64)
	for i := range e.Submissions {
		s := &e.Submissions[i]
		if s.Inputs.PublicAmount >= 0 {
			continue
		}
		due[s.Recipient] += 0 // a failed withdrawal pays nothing
		if s.State == "completed" && s.Swap == nil {
			net, _ := e.Fees.Net(s.Inputs.Gross())
			due[s.Recipient] += int64(net) //nolint:gosec // far below 2^63 lamports exist
		}
	}
	x := newIndex(e)
	paid := make(map[solana.PublicKey]int64)
	for i := range e.Transactions {
		tx := &e.Transactions[i]
		for key, change := range tx.Changes {
			paid[key] += change
		}
		for k := range tx.Ends {
			if end := &tx.Ends[k]; !tx.Failed && end.How == shieldpool.Refunded {
				due[end.Recipient] += end.heldLamports(tx)
			}
		}
		if tx.Failed || x.payers[tx.Payer] {
			continue
		}
		// A client's own wallet sent this withdrawal to the chain.
		for k := range tx.Calls {
			if call := &tx.Calls[k]; call.Inputs.PublicAmount < 0 && call.Swap == nil {
				net, _ := e.Fees.Net(call.Inputs.Gross())
				due[call.Recipient] += int64(net) //nolint:gosec // as above
			}
		}
	}
	for recipient, want := range due {
		r.Examined++
		if paid[recipient] != want {
			r.fault("a recipient of request %s got %d lamports, expected %d", requestOf(e, recipient), paid[recipient], want)
		}
	}
}

func requestOf(e *Evidence, recipient solana.PublicKey) uuid.UUID {
	for i := range e.Submissions {
		if e.Submissions[i].Recipient == recipient {
			return e.Submissions[i].ID
		}
	}
	return uuid.Nil
}
