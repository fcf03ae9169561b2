package swap

import (
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestSwapEndIsSearchedOnlyInPossibleSlots: the search covers no slots before the first
// leg, which strangers can fill with transactions. It starts before the slot at which
// the state was last seen, because a fork may have shown the state once more after its
// end.
func TestSwapEndIsSearchedOnlyInPossibleSlots(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		seen  uint64 // the slot at which the chain showed the state; 0 for none
		want  uint64
		alone bool // only one endpoint reports the slot
	}{
		"the state was never seen":                                   {seen: 0, want: testCreated},
		"the state was seen soon after the first leg":                {seen: testCreated + forkSlots - 10, want: testCreated},
		"the state was seen more than forkSlots after the first leg": {seen: testCreated + forkSlots + 30, want: testCreated + 30},
		"the state was seen in the slot of the first leg":            {seen: testCreated, want: testCreated},
		"only one endpoint showed the state at a slot far ahead":     {seen: testCreated + forkSlots + 30, want: testCreated, alone: true},
		"the state was seen forkSlots after the first leg":           {seen: testCreated + forkSlots, want: testCreated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, (*world).createTokenAccounts)
			if test.seen > 0 {
				w.chain.slot, w.chain.uncorroborated = test.seen, test.alone
				if _, err := w.next(); err != nil || w.chain.searches > 0 {
					t.Fatalf("error %v after %d searches, want a draft", err, w.chain.searches)
				}
			}
			delete(w.chain.accounts, w.swap.State)
			w.chain.slot = testTimeout - 5
			w.chain.swapEnd = &onchain.SwapEnd{How: shieldpool.Executed, Signature: solana.Signature{4}, Slot: testCreated + 40, Confirmation: onchain.Confirmed}
			if _, err := w.next(); err != nil {
				t.Fatal(err)
			}
			if w.chain.first != test.want || w.chain.last != testTimeout-5 {
				t.Errorf("the end is searched in slots %d to %d, want %d to %d", w.chain.first, w.chain.last, test.want, testTimeout-5)
			}
		})
	}
}
