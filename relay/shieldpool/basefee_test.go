package shieldpool

import "testing"

func TestTheBaseFeeCountsRequestedUnits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		compute Compute
		want    uint64
	}{
		"an unknown base fee is that of a signature": {Compute{Limit: 1_400_000}, 5000},
		"a fixed fee":                     {Compute{Limit: 1_400_000, Base: BaseFee{Fixed: 2500}}, 2500},
		"a fee for each unit, rounded up": {Compute{Limit: 250_001, Base: BaseFee{Fixed: 2500, PerMillion: 100_000}}, 2500 + 25_001},
		"a price comes on top":            {Compute{Limit: 100_000, Price: 1_000_000, Base: BaseFee{Fixed: 2500, PerMillion: 10}}, 2500 + 1 + 100_000},
	} {
		if got := test.compute.Fee(); got != test.want {
			t.Errorf("%s: the fee is %d lamports, want %d", name, got, test.want)
		}
	}
}
