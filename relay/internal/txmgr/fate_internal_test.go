package txmgr

import (
	"testing"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestTheFateOfAnAttempt(t *testing.T) {
	t.Parallel()
	a := &Attempt{BlockhashSlot: 1000, LastValidBlockHeight: 900}
	failure := &shieldpool.TransactionError{Kind: "InstructionError"}
	past := onchain.SearchResult{FinalizedHeight: 901, FirstAvailable: 1000}
	status := func(c onchain.Commitment, err *shieldpool.TransactionError) *onchain.Status {
		return &onchain.Status{Slot: 1001, Confirmation: c, Err: err}
	}
	tests := map[string]struct {
		status *onchain.Status
		look   onchain.SearchResult
		want   onchain.Fate
	}{
		"confirmed without an error is landed":                                    {status(onchain.Confirmed, nil), past, onchain.Landed},
		"finalized without an error is landed":                                    {status(onchain.Finalized, nil), past, onchain.Landed},
		"processed may still be undone":                                           {status(onchain.Processed, nil), past, onchain.MayLand},
		"failed and confirmed may succeed on another fork":                        {status(onchain.Confirmed, failure), past, onchain.MayLand},
		"failed and finalized has failed":                                         {status(onchain.Finalized, failure), past, onchain.FailedOnChain},
		"unknown past its last height, to a history that reaches back, is dead":   {nil, past, onchain.Expired},
		"unknown at its last height may be in that very block":                    {nil, onchain.SearchResult{FinalizedHeight: 900}, onchain.MayLand},
		"unknown while its blockhash lives may land":                              {nil, onchain.SearchResult{FinalizedHeight: 5}, onchain.MayLand},
		"unknown while its slot's blockhashes live may land":                      {nil, onchain.SearchResult{FinalizedHeight: 5, ExpiredSlot: 999}, onchain.MayLand},
		"unknown when its slot's blockhashes are over is dead at any height":      {nil, onchain.SearchResult{FinalizedHeight: 5, ExpiredSlot: 1000}, onchain.Expired},
		"a short history says nothing of what is over by its slot":                {nil, onchain.SearchResult{FinalizedHeight: 5, ExpiredSlot: 1000, FirstAvailable: 1001}, onchain.Forgotten},
		"landed is landed when its slot's blockhashes are over":                   {status(onchain.Confirmed, nil), onchain.SearchResult{ExpiredSlot: 2000}, onchain.Landed},
		"seen and not yet decided may land when its slot's blockhashes are over":  {status(onchain.Processed, nil), onchain.SearchResult{ExpiredSlot: 2000}, onchain.MayLand},
		"unknown to a history that begins after it is not known to be dead":       {nil, onchain.SearchResult{FinalizedHeight: 901, FirstAvailable: 1001}, onchain.Forgotten},
		"a short history says nothing of what may still land":                     {nil, onchain.SearchResult{FinalizedHeight: 900, FirstAvailable: 1001}, onchain.MayLand},
		"a short history that knows it all the same is believed":                  {status(onchain.Finalized, nil), onchain.SearchResult{FinalizedHeight: 901, FirstAvailable: 1001}, onchain.Landed},
		"failed on the chain is not forgotten by a history that no longer has it": {status(onchain.Finalized, failure), onchain.SearchResult{FinalizedHeight: 901, FirstAvailable: 2000}, onchain.FailedOnChain},
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
