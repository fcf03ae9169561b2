package app

import (
	"context"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/internal/feepayer"
)

// balanceMaxAge is the age above which /health reports that a payer's balance is old.
const balanceMaxAge = 2 * time.Minute

func (a *App) checkPayers(context.Context) error {
	return payersProblem(a.payers.Balances(), a.options.Config.FeePayerMinBalance)
}

// payersProblem names every payer that is not used or whose balance is old, and why.
func payersProblem(all []feepayer.Balance, minimum uint64) error {
	var problems []string
	for _, b := range all {
		switch {
		case b.State == feepayer.StateUnknown:
			problems = append(problems, fmt.Sprintf("the balance of fee payer %s has not been read since the relay started", b.Payer))
		case b.State == feepayer.StateDry:
			problems = append(problems, fmt.Sprintf("fee payer %s holds %d lamports, expected at least %d: send it funds", b.Payer, b.Lamports, minimum))
		case b.State == feepayer.StateRefused:
			problems = append(problems, fmt.Sprintf("the chain refuses fee payer %s, which held %d lamports when it was last read: check the account", b.Payer, b.Lamports))
		case b.State == feepayer.StateSignerUnavailable:
			problems = append(problems, fmt.Sprintf("the key service of fee payer %s does not sign: the log line that begins with signer says why", b.Payer))
		case b.Age > balanceMaxAge:
			problems = append(problems, fmt.Sprintf("the balance of fee payer %s was last read %s ago", b.Payer, b.Age.Round(time.Second)))
		}
	}
	return joinProblems(problems)
}
