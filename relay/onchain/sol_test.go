package onchain_test

import (
	"testing"

	"github.com/relaypool/relaypool/relay/onchain"
)

func TestLamportsAreWrittenInSOL(t *testing.T) {
	t.Parallel()
	for lamports, want := range map[uint64]string{
		0: "0", 1: "0.000000001", 50_000_000: "0.05", 1_000_000_000: "1", 2_500_000_000: "2.5", 100_000_000_000: "100",
	} {
		if got := onchain.SOL(lamports); got != want {
			t.Errorf("%d lamports are %q: want %q", lamports, got, want)
		}
	}
}
