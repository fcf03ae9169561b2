package txmgr

import "testing"

func TestAComputeLimitHasAMarginAndIsRoundedUp(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		units uint64
		want  uint32
	}{
		"units and margin are a round number":  {170_000, 200_000},
		"one unit more is rounded up":          {170_001, 210_000},
		"one unit less is rounded up":          {169_999, 200_000},
		"only the margin":                      {0, 30_000},
		"the largest units with a full margin": {1_370_000, 1_400_000},
		"the margin would exceed the maximum":  {1_370_001, 1_400_000},
		"the units exceed the maximum":         {1 << 40, 1_400_000},
	}
	for name, test := range tests {
		limits := &newComputeLimits().units
		if got := limits.current("transfer"); got != 400_000 {
			t.Errorf("before a simulation the limit is %d, want %d", got, 400_000)
		}
		limits.observe("withdrawal", 1_000_000)
		if got := limits.observe("transfer", test.units); got != test.want || unitsRule().limit(test.units) != test.want {
			t.Errorf("%s: %d units give the limits %d and %d, want %d", name, test.units, got, unitsRule().limit(test.units), test.want)
		}
		if got := limits.observe("transfer", test.units/2); got != test.want {
			t.Errorf("%s: after a smaller consumption the limit is %d, want it still %d", name, got, test.want)
		}
	}
}

func TestAComputeLimitThatWasTooLowIsRaised(t *testing.T) {
	t.Parallel()
	limits := &newComputeLimits().units
	limits.observe("transfer", 170_000)
	for _, want := range []uint32{300_000, 400_000} {
		limits.raise("transfer")
		if got := limits.current("transfer"); got != want {
			t.Errorf("the raised limit is %d, want %d", got, want)
		}
	}
	for range 20 {
		limits.raise("transfer")
	}
	if got := limits.current("transfer"); got != maxComputeUnits {
		t.Errorf("after many raises the limit is %d, want %d", got, maxComputeUnits)
	}
}

// Another process sent the transaction that exceeded its limit.
func TestARaiseBeforeTheFirstSimulationCountsWithIt(t *testing.T) {
	t.Parallel()
	limits := &newComputeLimits().units
	limits.raise("transfer")
	if got := limits.current("transfer"); got != 400_000 {
		t.Errorf("before a simulation the limit is %d, want %d", got, 400_000)
	}
	for range 2 {
		if got := limits.observe("transfer", 170_000); got != 300_000 {
			t.Errorf("the limit is %d, want 300000", got)
		}
	}
}

// TestThePriceIsThePercentileWithinItsBounds computes the price from the fees that others paid.
func TestThePriceIsThePercentileWithinItsBounds(t *testing.T) {
	t.Parallel()
	fees := []uint64{50, 10, 40, 20, 30} // in no order
	tests := map[string]struct {
		rule PriceRule
		fees []uint64
		want uint64
	}{
		"without fees, the floor":             {PriceRule{Floor: 7, Cap: 100, Percentile: 50}, nil, 7},
		"percentile 0 is the lowest fee":      {PriceRule{Cap: 100}, fees, 10},
		"percentile 50 is the median":         {PriceRule{Cap: 100, Percentile: 50}, fees, 30},
		"between two ranks, the lower rank":   {PriceRule{Cap: 100, Percentile: 74}, fees, 30},
		"percentile 75 is the fourth of five": {PriceRule{Cap: 100, Percentile: 75}, fees, 40},
		"percentile 100 is the highest fee":   {PriceRule{Cap: 100, Percentile: 100}, fees, 50},
		"of one fee, this fee":                {PriceRule{Cap: 100, Percentile: 50}, []uint64{9}, 9},
		"a percentile below the floor":        {PriceRule{Floor: 35, Cap: 100, Percentile: 50}, fees, 35},
		"a percentile above the cap":          {PriceRule{Cap: 25, Percentile: 50}, fees, 25},
		"without fees, a floor above the cap": {PriceRule{Floor: 7, Cap: 5, Percentile: 50}, nil, 5},
	}
	for name, test := range tests {
		if got := test.rule.Of(test.fees); got != test.want {
			t.Errorf("%s: the price is %d, want %d", name, got, test.want)
		}
	}
}
