package txmgr

import (
	"testing"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestTheFateOfAnAttempt(t *testing.T) {
	t.Parallel()
	a := &Attempt{BlockhashSlot: 1000, LastValidBlockHeight: 900}
	failure := &shieldpool.TransactionError{Kind: "InstructionError"}
	past := ledger.Look{FinalizedHeight: 901, FirstAvailable: 1000}
	status := func(c ledger.Commitment, err *shieldpool.TransactionError) *ledger.Status {
		return &ledger.Status{Slot: 1001, Confirmation: c, Err: err}
	}
	tests := map[string]struct {
		status *ledger.Status
		look   ledger.Look
		want   ledger.Fate
	}{
		"confirmed without an error is landed":                                    {status(ledger.Confirmed, nil), past, ledger.Landed},
		"finalized without an error is landed":                                    {status(ledger.Finalized, nil), past, ledger.Landed},
		"processed may still be undone":                                           {status(ledger.Processed, nil), past, ledger.MayLand},
		"failed and confirmed may succeed on another fork":                        {status(ledger.Confirmed, failure), past, ledger.MayLand},
		"failed and finalized has failed":                                         {status(ledger.Finalized, failure), past, ledger.FailedOnChain},
		"unknown past its last height, to a history that reaches back, is dead":   {nil, past, ledger.Expired},
		"unknown at its last height may be in that very block":                    {nil, ledger.Look{FinalizedHeight: 900}, ledger.MayLand},
		"unknown while its blockhash lives may land":                              {nil, ledger.Look{FinalizedHeight: 5}, ledger.MayLand},
		"unknown while its slot's blockhashes live may land":                      {nil, ledger.Look{FinalizedHeight: 5, ExpiredSlot: 999}, ledger.MayLand},
		"unknown when its slot's blockhashes are over is dead at any height":      {nil, ledger.Look{FinalizedHeight: 5, ExpiredSlot: 1000}, ledger.Expired},
		"a short history says nothing of what is over by its slot":                {nil, ledger.Look{FinalizedHeight: 5, ExpiredSlot: 1000, FirstAvailable: 1001}, ledger.Forgotten},
		"landed is landed when its slot's blockhashes are over":                   {status(ledger.Confirmed, nil), ledger.Look{ExpiredSlot: 2000}, ledger.Landed},
		"seen and not yet decided may land when its slot's blockhashes are over":  {status(ledger.Processed, nil), ledger.Look{ExpiredSlot: 2000}, ledger.MayLand},
		"unknown to a history that begins after it is not known to be dead":       {nil, ledger.Look{FinalizedHeight: 901, FirstAvailable: 1001}, ledger.Forgotten},
		"a short history says nothing of what may still land":                     {nil, ledger.Look{FinalizedHeight: 900, FirstAvailable: 1001}, ledger.MayLand},
		"a short history that knows it all the same is believed":                  {status(ledger.Finalized, nil), ledger.Look{FinalizedHeight: 901, FirstAvailable: 1001}, ledger.Landed},
		"failed on the chain is not forgotten by a history that no longer has it": {status(ledger.Finalized, failure), ledger.Look{FinalizedHeight: 901, FirstAvailable: 2000}, ledger.FailedOnChain},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fateOf(a, test.status, &test.look); got != test.want {
				t.Errorf("verdict is %d, want %d", got, test.want)
			}
		})
	}
}
