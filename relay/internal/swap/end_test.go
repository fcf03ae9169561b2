package swap

import (
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestTheEndIsSearchedInItsPossibleSlots: the search covers no slots before the first leg, because
// strangers' transactions fill them. It starts before the slot at which the state was last
// seen, because a fork may have shown the state once more after its end.
func TestTheEndIsSearchedInItsPossibleSlots(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		seen uint64 // the slot at which the chain showed the state; 0 for none
		want uint64
	}{
		"its state was never seen":                            {0, testCreated},
		"it was seen soon after the first leg":                {testCreated + forkSlots - 10, testCreated},
		"it was seen more than forkSlots after the first leg": {testCreated + forkSlots + 30, testCreated + 30},
		"it was seen in the slot of the first leg":            {testCreated, testCreated},
		"it was seen forkSlots after the first leg":           {testCreated + forkSlots, testCreated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, (*world).ready)
			if test.seen > 0 {
				w.chain.slot = test.seen
				if _, err := w.next(); err != nil || w.chain.searched > 0 {
					t.Fatalf("error %v after %d searches, want a draft", err, w.chain.searched)
				}
			}
			delete(w.chain.accounts, w.swap.State)
			w.chain.slot = testTimeout - 5
			w.chain.settled = &onchain.SwapEnd{How: shieldpool.Executed, Signature: solana.Signature{4}, Slot: testCreated + 40, Confirmation: onchain.Confirmed}
			if _, err := w.next(); err != nil {
				t.Fatal(err)
			}
			if w.chain.first != test.want || w.chain.last != testTimeout-5 {
				t.Errorf("its end is looked for in the slots %d to %d, want %d to %d", w.chain.first, w.chain.last, test.want, testTimeout-5)
			}
		})
	}
}
