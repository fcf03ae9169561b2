package chainwatch

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// A reading is valid only for the pool and chain for which it was requested.
func TestAReadingOfAnotherTargetIsEmpty(t *testing.T) {
	t.Parallel()
	profile := func(program byte) *shieldpool.Profile {
		return &shieldpool.Profile{ProgramID: solana.PublicKey{program}, Mints: []shieldpool.Mint{{Address: solana.PublicKey{9}}}}
	}
	devnet, mainnet := solana.Hash{1}, solana.Hash{2}
	payer := solana.PublicKey{7}
	read := Reading{
		Target: poolcheck.Target{Profile: profile(1), Genesis: devnet},
		Report: poolcheck.Report{Checks: []poolcheck.Check{{Name: poolcheck.CheckPool, State: poolcheck.OK}}},
		At:     time.Unix(1, 0),
		Payers: map[solana.PublicKey]Payer{payer: {Lamports: 5}},
	}
	for name, test := range map[string]struct {
		target       poolcheck.Target
		wantState    poolcheck.State
		wantBalances int
	}{
		"an equal target":                {poolcheck.Target{Profile: profile(1), Genesis: devnet}, poolcheck.OK, 1},
		"with other extra accounts":      {poolcheck.Target{Profile: profile(1), Genesis: devnet, Extra: []solana.PublicKey{payer}}, poolcheck.OK, 1},
		"another program":                {poolcheck.Target{Profile: profile(3), Genesis: devnet}, poolcheck.Unknown, 1},
		"a profile that is not resolved": {poolcheck.Target{Genesis: devnet}, poolcheck.Unknown, 1},
		"the program on another chain":   {poolcheck.Target{Profile: profile(1), Genesis: mainnet}, poolcheck.Unknown, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := read.ForTarget(test.target)
			if state, _, _ := got.PoolState(); state != test.wantState {
				t.Errorf("the pool is %s, want %s", state, test.wantState)
			}
			if got.At.IsZero() != (test.wantState != poolcheck.OK) {
				t.Errorf("the pool was read at %v, want a time only for the state OK", got.At)
			}
			if len(got.Payers) != test.wantBalances {
				t.Errorf("%d balances are known, want %d", len(got.Payers), test.wantBalances)
			}
		})
	}
}
