package shieldpool

import (
	"math"
	"testing"
)

func TestFees(t *testing.T) {
	t.Parallel()
	f := ShieldPoolV1().Fees
	tests := map[string]struct {
		gross, fee, net uint64
		ok              bool
	}{
		"a tenth of a SOL":         {100_000_000, 5_300_000, 94_700_000, true},
		"rounded down":             {10_349_695, 5_031_049, 5_318_646, true},
		"nothing left":             {5_015_045, 5_015_045, 0, false},
		"one lamport left":         {5_015_046, 5_015_045, 1, true},
		"less than the base":       {1_000_000, 5_003_000, 0, false},
		"zero":                     {0, 5_000_000, 0, false},
		"no overflow at the limit": {math.MaxInt64, 5_000_000 + math.MaxInt64/1000*3 + math.MaxInt64%1000*3/1000, math.MaxInt64 - (5_000_000 + math.MaxInt64/1000*3 + math.MaxInt64%1000*3/1000), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := f.Fee(tt.gross); got != tt.fee {
				t.Errorf("fee is %d, want %d", got, tt.fee)
			}
			if net, ok := f.Net(tt.gross); net != tt.net || ok != tt.ok {
				t.Errorf("net is %d, %v, want %d, %v", net, ok, tt.net, tt.ok)
			}
		})
	}
}
