package sweep

import (
	"fmt"

	"github.com/gagliardetto/solana-go"
)

// Short says that a step lacks lamports, and has made no new moves.
type Short struct {
	// Need is the required amount in lamports, Have the available amount, and To the
	// key to which more has to be sent.
	Need, Have uint64
	To         solana.PublicKey
	// What says what the lamports are for.
	What string
}

// Error says how much is missing and where to send it.
func (e *Short) Error() string {
	return fmt.Sprintf("not enough lamports %s: expected %d, available %d; send at least %d to %s and run it again", e.What, e.Need, e.Have, e.Need-min(e.Have, e.Need), e.To)
}

// shortage says how much is missing for every new payer to have minBalance.
func shortage(to, sources []balance, available, minBalance uint64) *Short {
	var need uint64
	for _, t := range to {
		need += subtract(minBalance, t.lamports)
	}
	return &Short{Need: need, Have: available, To: sources[0].key, What: "above what the old payers keep, to make every new payer usable"}
}
