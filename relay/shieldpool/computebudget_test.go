package shieldpool

import "testing"

func TestPriorityFeeRoundsUp(t *testing.T) {
	t.Parallel()
	for c, want := range map[Compute]uint64{{Limit: 400_000, Price: 10_000}: 4000, {Limit: 1, Price: 1}: 1, {Price: 5}: 0, {Limit: 200_000, Price: 3}: 1, {Limit: 1_400_000, Price: 1 << 40}: 1539316278887} {
		if got := c.PriorityFee(); got != want {
			t.Errorf("%+v costs %d, want %d", c, got, want)
		}
	}
}
