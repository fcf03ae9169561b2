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
	expired := SearchResult{FinalizedHeight: height + 1, FirstAvailable: slot}
	tests := map[string]struct {
		status   *Status
		result   SearchResult
		want     Fate
		decisive bool
	}{
		"confirmed":                                     {&Status{Confirmation: Confirmed}, expired, Landed, true},
		"finalized":                                     {&Status{Confirmation: Finalized}, expired, Landed, true},
		"processed":                                     {&Status{Confirmation: Processed}, expired, MayLand, false},
		"failed, confirmed":                             {&Status{Confirmation: Confirmed, Err: failure}, expired, MayLand, false},
		"failed, finalized":                             {&Status{Confirmation: Finalized, Err: failure}, expired, FailedOnChain, true},
		"finalized, unverified":                         {&Status{Confirmation: Finalized, Unverified: true}, expired, MayLand, false},
		"failed, finalized, unverified":                 {&Status{Confirmation: Finalized, Err: failure, Unverified: true}, expired, MayLand, false},
		"unknown after its last valid height":           {nil, expired, Expired, false},
		"unknown at its last valid height":              {nil, SearchResult{FinalizedHeight: height, FirstAvailable: slot}, MayLand, false},
		"unknown in a history that is too short":        {nil, SearchResult{FinalizedHeight: height + 1, FirstAvailable: slot + 1}, Forgotten, false},
		"unknown, blockhashes of its slot expired":      {nil, SearchResult{ExpiredSlot: slot, FirstAvailable: slot}, Expired, false},
		"unknown, blockhashes of its slot valid":        {nil, SearchResult{ExpiredSlot: slot - 1, FirstAvailable: slot}, MayLand, false},
		"unknown, blockhashes of its time expired":      {nil, SearchResult{ExpiredBefore: signed.Add(clockTolerance + 1), FirstAvailable: slot}, Expired, false},
		"unknown, blockhashes of its time may be valid": {nil, SearchResult{ExpiredBefore: signed.Add(clockTolerance), FirstAvailable: slot}, MayLand, false},
		"processed, blockhashes of its time expired":    {&Status{Confirmation: Processed}, SearchResult{ExpiredBefore: signed.Add(time.Hour)}, MayLand, false},
	}
	for name, test := range tests {
		if got := test.result.Fate(test.status, slot, height, signed); got != test.want {
			t.Errorf("%s: fate is %d, want %d", name, got, test.want)
		}
		if got := test.status.Decisive(); got != test.decisive {
			t.Errorf("%s: decisive is %t, want %t", name, got, test.decisive)
		}
	}
	// Slot 0 means that the blockhash's slot is unknown, so no expired slot shows that it expired.
	if got := (&SearchResult{ExpiredBefore: signed}).Fate(nil, 0, height, time.Time{}); got != MayLand {
		t.Errorf("fate without a slot is %d, want MayLand", got)
	}
}
