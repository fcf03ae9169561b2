package market_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/market"
)

// output is State.Output in big integers.
func output(r market.Reserves, feeBPS uint16, lamports uint64) *big.Int {
	n := func(x uint64) *big.Int { return new(big.Int).SetUint64(x) }
	in := new(big.Int).Mul(n(lamports), n(market.MaxBPS-uint64(feeBPS)))
	in.Div(in, n(market.MaxBPS))
	sum := new(big.Int).Add(n(r.Lamports), in)
	if sum.Sign() == 0 || !sum.IsUint64() {
		return new(big.Int)
	}
	return in.Mul(in, n(r.Tokens)).Div(in, sum)
}

func TestOutputIsExact(t *testing.T) {
	t.Parallel()
	check := func(r market.Reserves, fee uint16, lamports uint64) {
		t.Helper()
		state := market.State{Reserves: r, FeeBPS: fee}
		got, want := state.Output(lamports), output(r, fee, lamports)
		if new(big.Int).SetUint64(got).Cmp(want) != 0 {
			t.Errorf("%d lamports into %+v at %d basis points: got %d, want %s", lamports, r, fee, got, want)
		}
		if got >= r.Tokens {
			t.Errorf("%d lamports into %+v buy %d tokens, want fewer than the reserve", lamports, r, got)
		}
	}
	edges := []uint64{0, 1, 2, 9_999, 10_000, 10_001, 1 << 32, math.MaxInt64, math.MaxUint64 - 1, math.MaxUint64}
	for _, lamports := range edges {
		for _, a := range edges[1:] {
			for _, b := range edges[1:] {
				for _, fee := range []uint16{0, 1, 30, market.MaxBPS - 1} {
					check(market.Reserves{Lamports: a, Tokens: b}, fee, lamports)
				}
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	any64 := func() uint64 { return random.Uint64() >> random.IntN(64) }
	for range 20_000 {
		check(market.Reserves{Lamports: max(1, any64()), Tokens: max(1, any64())}, uint16(random.IntN(market.MaxBPS)), any64())
	}
}

func TestOutputOfKnownMarkets(t *testing.T) {
	t.Parallel()
	const sol = solana.LAMPORTS_PER_SOL
	deep := market.State{Reserves: market.Reserves{Lamports: 10_000 * sol, Tokens: 1_500_000_000_000}, FeeBPS: 30}
	for lamports, want := range map[uint64]uint64{
		sol:       149_535_091,
		100 * sol: 14_807_370_515,
		1:         0, // the fee leaves nothing
		10:        1,
	} {
		if got := deep.Output(lamports); got != want {
			t.Errorf("%d lamports: got %d, want %d", lamports, got, want)
		}
	}
}

func TestParseStateRefusesOtherSizes(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 82, 84} {
		if _, err := market.ParseState(make([]byte, size)); err == nil {
			t.Errorf("%d bytes: got a state, want an error", size)
		}
	}
}
