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
		result onchain.SearchResult
		want   onchain.Fate
	}{
		"confirmed without an error has landed":                                  {status(onchain.Confirmed, nil), past, onchain.Landed},
		"finalized without an error has landed":                                  {status(onchain.Finalized, nil), past, onchain.Landed},
		"processed may still be undone":                                          {status(onchain.Processed, nil), past, onchain.MayLand},
		"failed and confirmed may succeed on another fork":                       {status(onchain.Confirmed, failure), past, onchain.MayLand},
		"failed and finalized has failed":                                        {status(onchain.Finalized, failure), past, onchain.FailedOnChain},
		"unknown past its last height, in a history that is complete, is dead":   {nil, past, onchain.Expired},
		"unknown at its last height may still land in that block":                {nil, onchain.SearchResult{FinalizedHeight: 900}, onchain.MayLand},
		"unknown while its blockhash is valid may land":                          {nil, onchain.SearchResult{FinalizedHeight: 5}, onchain.MayLand},
		"unknown while the blockhashes of its slot are valid may land":           {nil, onchain.SearchResult{FinalizedHeight: 5, ExpiredSlot: 999}, onchain.MayLand},
		"unknown when the blockhashes of its slot expired is dead at any height": {nil, onchain.SearchResult{FinalizedHeight: 5, ExpiredSlot: 1000}, onchain.Expired},
		"unknown and expired by its slot, but before the history: forgotten":     {nil, onchain.SearchResult{FinalizedHeight: 5, ExpiredSlot: 1000, FirstAvailable: 1001}, onchain.Forgotten},
		"confirmed has landed even when the blockhashes of its slot expired":     {status(onchain.Confirmed, nil), onchain.SearchResult{ExpiredSlot: 2000}, onchain.Landed},
		"processed may land even when the blockhashes of its slot expired":       {status(onchain.Processed, nil), onchain.SearchResult{ExpiredSlot: 2000}, onchain.MayLand},
		"unknown past its last height, but before the history: forgotten":        {nil, onchain.SearchResult{FinalizedHeight: 901, FirstAvailable: 1001}, onchain.Forgotten},
		"unknown at its last height, and before the history, may land":           {nil, onchain.SearchResult{FinalizedHeight: 900, FirstAvailable: 1001}, onchain.MayLand},
		"finalized without an error has landed, although before the history":     {status(onchain.Finalized, nil), onchain.SearchResult{FinalizedHeight: 901, FirstAvailable: 1001}, onchain.Landed},
		"failed and finalized has failed, although before the history":           {status(onchain.Finalized, failure), onchain.SearchResult{FinalizedHeight: 901, FirstAvailable: 2000}, onchain.FailedOnChain},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fateOf(a, test.status, &test.result); got != test.want {
				t.Errorf("the fate is %d, want %d", got, test.want)
			}
		})
	}
}
