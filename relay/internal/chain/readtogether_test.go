package chain

import (
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Each inspection gets its own accounts, although 40 of them share few calls.
func TestConcurrentInspectionsShareCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pool := testPool(t)
		a := &accounts{stored: map[solana.PublicKey]*onchain.Account{}, slot: 5, delay: time.Second / 4}
		p, _ := newPool(t, a)
		nullifier := func(i int) [32]byte { return [32]byte{30: 1, 31: byte(i)} }
		for i := 0; i < 40; i += 3 {
			address, _, err := pool.Nullifier(nullifier(i))
			if err != nil {
				t.Fatal(err)
			}
			a.stored[address] = owned(pool, nil)
			a.stored[solana.PublicKey{9, byte(i)}] = &onchain.Account{Lamports: uint64(i)}
		}
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				got, err := p.Inspect(t.Context(), &shieldpool.PublicInputs{Nullifiers: [2][32]byte{nullifier(i), {31: 200}}}, solana.PublicKey{9, byte(i)}, 0)
				if spent := i%3 == 0; err != nil || got.Spent != [2]bool{spent, false} || got.RecipientExists != spent || spent && got.RecipientLamports != uint64(i) || got.Slot != 5 {
					t.Errorf("inspection %d is %+v, error %v", i, got, err)
				}
			})
		}
		wg.Wait()
		if len(a.asked) < 2 || len(a.asked) > 4 { // two at once, or the first alone and then those that waited; 33 at most in a call
			t.Errorf("%d calls for 40 inspections, want 2 to 4", len(a.asked))
		}
		for _, keys := range a.asked {
			if len(keys) > 100 {
				t.Errorf("a call reads %d accounts, and may read 100", len(keys))
			}
		}
	})
}
