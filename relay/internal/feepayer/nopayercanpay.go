package feepayer

import (
	"fmt"
	"strings"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// retryEmpty is the Retry-After while no payer can pay. It is long because a person or a job
	// has to fund a payer first. retryChain is the Retry-After while no balance has been read.
	retryEmpty = 30 * time.Second
	retryChain = 5 * time.Second
)

// refuse returns the refusal of work for which no payer can pay. cause is the error of the last
// read, if any.
func (p *Payers) refuse(lamports uint64, cause error) error {
	balances := p.Balances()
	known := false
	for _, b := range balances {
		known = known || b.State != StateUnknown
	}
	if !known {
		return refusal.New(refusal.ChainUnavailable,
			"the relay has not yet been able to read its fee payers' balances: send the same request again later").
			Retry(retryChain).Because(cause)
	}
	return refusal.New(refusal.FeePayerEmpty,
		"the relay's fee payers cannot pay for another transaction until its operator funds them: send the same request again later").
		Retry(retryEmpty).Because(shortage{balances: balances, need: max(lamports, p.minBalance)})
}

// shortage lists why each payer cannot pay, for the people who run the relay.
type shortage struct {
	balances []Balance
	need     uint64
}

// Error names each payer's address, its balance and the age of that reading.
func (s shortage) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d lamports are needed", s.need)
	for _, b := range s.balances {
		if b.State == StateUnknown {
			fmt.Fprintf(&text, "; %s has never been read", b.Payer)
			continue
		}
		fmt.Fprintf(&text, "; %s held %d lamports %s ago", b.Payer, b.Lamports, b.Age.Round(time.Second))
		if b.Reserved > 0 {
			fmt.Fprintf(&text, ", %d of them for what is in flight", b.Reserved)
		}
		if b.State == StateRefused {
			text.WriteString(", and the chain refuses it")
		}
	}
	return text.String()
}
