package shieldpool_test

import (
	"encoding/hex"
	"testing"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestParseRentReadsBothLayoutsOfTheSysvar(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		data    string
		want    shieldpool.Rent
		invalid bool
	}{
		"today's rate counts once":               {"d813000000000000" + "000000000000f03f" + "32", 5080, false},
		"the rate before SIMD-0194 counts twice": {"980d000000000000" + "0000000000000040" + "32", 6960, false},
		"a rate of zero":                         {"0000000000000000" + "000000000000f03f" + "32", 0, true},
		"a rate above the maximum":               {"ffffffffffffff00" + "000000000000f03f" + "32", 0, true},
		"a factor that is no number":             {"d813000000000000" + "000000000000f87f" + "32", 0, true},
		"a rate that is no whole number":         {"0100000000000000" + "000000000000f83f" + "32", 0, true},
		"another length":                         {"d813000000000000" + "000000000000f03f", 0, true},
	}
	for name, test := range tests {
		data, err := hex.DecodeString(test.data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := shieldpool.ParseRent(data)
		if got != test.want || (err != nil) != test.invalid {
			t.Errorf("%s: got rate %d, error %v; want %d and an error: %v", name, got, err, test.want, test.invalid)
		}
	}
}

// TestRentEqualsMainnetMinimumBalances compares with the minimum balances that chain explorers show.
func TestRentEqualsMainnetMinimumBalances(t *testing.T) {
	t.Parallel()
	for rate, want := range map[shieldpool.Rent][3]uint64{
		5080:                   {650_240, 1_468_120, 1_488_440},
		shieldpool.HighestRent: {890_880, 2_011_440, 2_039_280},
	} {
		for i, n := range []shieldpool.NewAccounts{{Nullifiers: 1}, {SwapStates: 1}, {TokenAccounts: 1}} {
			if got := n.Rent(rate); got != want[i] {
				t.Errorf("at rate %d account %+v costs %d lamports, want %d", rate, n, got, want[i])
			}
		}
	}
	if got := shieldpool.Rent(0).Known(); got != shieldpool.HighestRent {
		t.Errorf("an unknown rate counts as %d, want the highest", got)
	}
	if got := []shieldpool.Rent{shieldpool.Rent(5080).Upper(), shieldpool.Rent(9000).Upper()}; got[0] != shieldpool.HighestRent || got[1] != 9000 {
		t.Errorf("upper rates are %v, want %d and 9000", got, shieldpool.HighestRent)
	}
}
