package config

import (
	"slices"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// The values of the flag transaction-format.
const (
	// FormatLegacy: legacy transactions, or version 0 if the relay has a lookup table.
	FormatLegacy = "legacy"
	// FormatAuto: version 1 for transactions that are too large for the older formats, and
	// for executions of swaps.
	FormatAuto = "auto"
	// FormatV1: version 1 for all transactions.
	FormatV1 = "v1"
)

func (s Serve) checkTransactionFormat(p *shieldpool.Profile) (problems []error) {
	const flag = "transaction-format"
	if !slices.Contains([]string{FormatLegacy, FormatAuto, FormatV1}, s.TransactionFormat) {
		return []error{commandline.Problem(flag, "expected legacy, auto or v1, received another value of %d characters", len(s.TransactionFormat))}
	}
	if s.TransactionFormat != FormatLegacy && p != nil && p.RefusesV1 {
		return []error{commandline.Problem(flag, "is %s, and the profile says that the program refuses version 1: expected legacy", s.TransactionFormat)}
	}
	return nil
}
