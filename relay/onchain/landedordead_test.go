package onchain

import (
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestFate(t *testing.T) {
	t.Parallel()
	const slot, height = 1000, 900
	failure := &shieldpool.TransactionError{Kind: "InstructionError"}
	signed := time.Unix(1000, 0)
	past := SearchResult{FinalizedHeight: height + 1, FirstAvailable: slot}
	tests := map[string]struct {
		status   *Status
		look     SearchResult
		want     Fate
		decisive bool
	}{
		"confirmed":                             {&Status{Confirmation: Confirmed}, past, Landed, true},
		"finalized":                             {&Status{Confirmation: Finalized}, past, Landed, true},
		"processed":                             {&Status{Confirmation: Processed}, past, MayLand, false},
		"failed, not final":                     {&Status{Confirmation: Confirmed, Err: failure}, past, MayLand, false},
		"failed for good":                       {&Status{Confirmation: Finalized, Err: failure}, past, FailedOnChain, true},
		"confirmed, as one endpoint says":       {&Status{Confirmation: Finalized, Unverified: true}, past, MayLand, false},
		"failed for good, as one endpoint says": {&Status{Confirmation: Finalized, Err: failure, Unverified: true}, past, MayLand, false},
		"unknown after its last height":         {nil, past, Expired, false},
		"unknown at its last height":            {nil, SearchResult{FinalizedHeight: height, FirstAvailable: slot}, MayLand, false},
		"unknown, of a shorter history":         {nil, SearchResult{FinalizedHeight: height + 1, FirstAvailable: slot + 1}, Forgotten, false},
		"unknown when its slot's are over":      {nil, SearchResult{ExpiredSlot: slot, FirstAvailable: slot}, Expired, false},
		"unknown a slot before that":            {nil, SearchResult{ExpiredSlot: slot - 1, FirstAvailable: slot}, MayLand, false},
		"unknown when all of its time are over": {nil, SearchResult{ExpiredAt: signed.Add(clockTolerance + 1), FirstAvailable: slot}, Expired, false},
		"unknown a little before that":          {nil, SearchResult{ExpiredAt: signed.Add(clockTolerance), FirstAvailable: slot}, MayLand, false},
		"processed when all are over":           {&Status{Confirmation: Processed}, SearchResult{ExpiredAt: signed.Add(time.Hour)}, MayLand, false},
	}
	for name, test := range tests {
		if got := test.look.Fate(test.status, slot, height, signed); got != test.want {
			t.Errorf("%s: the fate is %d, want %d", name, got, test.want)
		}
		if got := test.status.Decisive(); got != test.decisive {
			t.Errorf("%s: decisive is %t, want %t", name, got, test.decisive)
		}
	}
	// A blockhash of slot 0 has no known slot, so no expired slot ends it.
	if got := (&SearchResult{ExpiredAt: signed}).Fate(nil, 0, height, time.Time{}); got != MayLand {
		t.Errorf("without any slot the fate is %d, want that it may land", got)
	}
}
