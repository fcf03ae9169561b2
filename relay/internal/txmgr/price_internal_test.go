package txmgr

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
		limits.observe("withdrawal", 1_000_000)
		if got := limits.observe("transfer", test.units); got != test.want || limitOf(test.units) != test.want {
			t.Errorf("%s: %d units give the limits %d and %d, want %d", name, test.units, got, limitOf(test.units), test.want)
		}
		if got := limits.observe("transfer", test.units/2); got != test.want {
			t.Errorf("%s: after a smaller one the limit is %d, want %d still", name, got, test.want)
		}
	}
}

func TestAComputeLimitThatWasTooLowIsRaised(t *testing.T) {
	t.Parallel()
	limits := newComputeLimits()
	limits.observe("transfer", 170_000)
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

// TestThePriceIsThePercentileWithinItsBounds, over the fees that others paid recently.
func TestThePriceIsThePercentileWithinItsBounds(t *testing.T) {
	t.Parallel()
	fees := []uint64{50, 10, 40, 20, 30} // in no order
	tests := map[string]struct {
		rule PriceRule
		fees []uint64
		want uint64
	}{
		"without fees it is the floor":           {PriceRule{Floor: 7, Cap: 100, Percentile: 50}, nil, 7},
		"the least of all":                       {PriceRule{Cap: 100}, fees, 10},
		"the one in the middle":                  {PriceRule{Cap: 100, Percentile: 50}, fees, 30},
		"between two ranks the lower one":        {PriceRule{Cap: 100, Percentile: 74}, fees, 30},
		"the next rank from its percentile on":   {PriceRule{Cap: 100, Percentile: 75}, fees, 40},
		"the most of all":                        {PriceRule{Cap: 100, Percentile: 100}, fees, 50},
		"of one it is that one at any rank":      {PriceRule{Cap: 100, Percentile: 50}, []uint64{9}, 9},
		"the floor is not gone below":            {PriceRule{Floor: 35, Cap: 100, Percentile: 50}, fees, 35},
		"the cap is not gone above":              {PriceRule{Cap: 25, Percentile: 50}, fees, 25},
		"the cap holds for the floor of nothing": {PriceRule{Floor: 7, Cap: 5, Percentile: 50}, nil, 5},
	}
	for name, test := range tests {
		if got := test.rule.Of(test.fees); got != test.want {
			t.Errorf("%s: the price is %d, want %d", name, got, test.want)
		}
	}
}
