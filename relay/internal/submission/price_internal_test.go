package submission

import "testing"

func TestAComputeLimitHasAMarginAndIsRoundedUp(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		units uint64
		want  uint32
	}{
		"the margin brings it to a round limit": {170_000, 200_000},
		"one more unit brings the next":         {170_001, 210_000},
		"one less stays":                        {169_999, 200_000},
		"nothing but the margin":                {0, 30_000},
		"the largest that has all its margin":   {1_370_000, 1_400_000},
		"no more than the network allows":       {1_370_001, 1_400_000},
		"more than the network allows":          {1 << 40, 1_400_000},
	}
	for name, test := range tests {
		limits := newComputeLimits()
		if got := limits.limit("transfer"); got != maxComputeUnits {
			t.Errorf("before anything was seen the limit is %d, want %d", got, maxComputeUnits)
		}
		limits.saw("withdrawal", 1_000_000)
		if got := limits.saw("transfer", test.units); got != test.want || limitOf(test.units) != test.want {
			t.Errorf("%s: %d units give the limits %d and %d, want %d", name, test.units, got, limitOf(test.units), test.want)
		}
		if got := limits.saw("transfer", test.units/2); got != test.want {
			t.Errorf("%s: after a smaller one the limit is %d, want %d still", name, got, test.want)
		}
	}
}

func TestAComputeLimitThatWasTooLowIsRaised(t *testing.T) {
	t.Parallel()
	limits := newComputeLimits()
	limits.saw("transfer", 170_000)
	for _, want := range []uint32{300_000, 400_000} {
		limits.raise("transfer")
		if got := limits.limit("transfer"); got != want {
			t.Errorf("raised, the limit is %d, want %d", got, want)
		}
	}
	for range 20 {
		limits.raise("transfer")
	}
	if got := limits.limit("transfer"); got != maxComputeUnits {
		t.Errorf("raised for long, the limit is %d, want %d", got, maxComputeUnits)
	}
}
