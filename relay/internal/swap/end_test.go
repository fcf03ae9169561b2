package swap

import (
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestTheEndIsLookedForWhereItCanBe: not before the swap's beginning, where strangers send
// transactions to its address, and not only after the state was last seen, because a fork may have
// shown it once more.
func TestTheEndIsLookedForWhereItCanBe(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		seen uint64 // the slot at which the state was there; 0 for none
		want uint64
	}{
		"its state was never seen":                  {0, testCreated},
		"it was seen soon after the beginning":      {testCreated + forkSlots - 10, testCreated},
		"it was seen when no fork reaches so far":   {testCreated + forkSlots + 30, testCreated + 30},
		"it was seen at the beginning itself":       {testCreated, testCreated},
		"it was seen as late as a fork can tell of": {testCreated + forkSlots, testCreated},
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
