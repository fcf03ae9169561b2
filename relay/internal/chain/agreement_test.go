package chain

import (
	"testing"
	"time"
)

// heightAnswer is an endpoint's report of a block, and the time since the previous report.
type heightAnswer struct {
	endpoint, way int
	after         time.Duration
	block         block
}

func TestHeightReportsAreBounded(t *testing.T) {
	t.Parallel()
	const epochInfo = byEpochInfo
	both := []heightAnswer{{0, epochInfo, 0, block{1000, 500}}, {1, epochInfo, 0, block{1000, 500}}}
	tests := map[string]struct {
		before       []heightAnswer
		last         heightAnswer
		above, below uint64
	}{
		"the first report is believed":                             {nil, heightAnswer{0, epochInfo, 0, block{1000, 900}}, 0, 0},
		"one slot later, the same height: the slot was skipped":    {both, heightAnswer{0, epochInfo, 0, block{1001, 500}}, 0, 0},
		"a hundred slots later, a hundred higher":                  {both, heightAnswer{0, epochInfo, 0, block{1100, 600}}, 0, 0},
		"a hundred slots later, too high by the slack":             {both, heightAnswer{0, epochInfo, 0, block{1100, 610}}, 0, 0},
		"a hundred slots later, too high by more than the slack":   {both, heightAnswer{0, epochInfo, 0, block{1100, 611}}, 1, 0},
		"too low by the slack":                                     {both, heightAnswer{0, epochInfo, 0, block{1100, 490}}, 0, 0},
		"too low by more than the slack":                           {both, heightAnswer{0, epochInfo, 0, block{1100, 489}}, 0, 1},
		"a hundred slots earlier, too low by the slack":            {both, heightAnswer{0, epochInfo, 0, block{900, 390}}, 0, 0},
		"a hundred slots earlier, too low by more than the slack":  {both, heightAnswer{0, epochInfo, 0, block{900, 389}}, 0, 1},
		"a hundred slots earlier, too high by more than the slack": {both, heightAnswer{0, epochInfo, 0, block{900, 511}}, 1, 0},
		"a third endpoint is checked against the agreement of two": {both, heightAnswer{2, epochInfo, 0, block{1010, 700}}, 180, 0},
		"an agreement unconfirmed for over a minute is dropped":    {both, heightAnswer{2, epochInfo, time.Minute + 1, block{1010, 700}}, 0, 0},
		"an agreement that is a minute old is kept":                {both, heightAnswer{2, epochInfo, time.Minute, block{1010, 700}}, 180, 0},
		"two reports too far apart in slots do not agree":          {[]heightAnswer{{0, epochInfo, 0, block{1000, 500}}, {1, epochInfo, 0, block{1065, 565}}}, heightAnswer{2, epochInfo, 0, block{1010, 700}}, 0, 0},
		"two reports at the greatest distance agree":               {[]heightAnswer{{0, epochInfo, 0, block{1000, 500}}, {1, epochInfo, 0, block{1064, 564}}}, heightAnswer{2, epochInfo, 0, block{1010, 700}}, 126, 0},
		"two contradicting reports do not agree":                   {[]heightAnswer{{0, epochInfo, 0, block{1000, 500}}, {1, epochInfo, 0, block{1000, 511}}}, heightAnswer{2, epochInfo, 0, block{1200, 1000}}, 0, 0},
		"an old report corroborates nothing":                       {[]heightAnswer{{0, epochInfo, 0, block{1000, 500}}, {1, epochInfo, reportMaxAge + 1, block{1000, 500}}}, heightAnswer{2, epochInfo, 0, block{1010, 700}}, 0, 0},
		"without an agreement, checked against its own report":     {[]heightAnswer{{0, epochInfo, 0, block{1000, 500}}}, heightAnswer{0, byBlockhash, 0, block{1000, 900}}, 390, 0},
		"its own report is too old to be checked against":          {[]heightAnswer{{0, epochInfo, 0, block{1000, 500}}}, heightAnswer{0, byBlockhash, reportMaxAge + 1, block{1000, 900}}, 0, 0},
		"a refused blockhash is refused again":                     {[]heightAnswer{{0, epochInfo, 0, block{1000, 500}}, {0, byBlockhash, 0, block{1000, 900}}}, heightAnswer{0, byBlockhash, 0, block{1001, 901}}, 390, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &heights{slack: 10, reports: make([]heightReport, 3)}
			now := time.Unix(1_800_000_000, 0)
			for _, s := range test.before {
				now = now.Add(s.after)
				h.observe(s.endpoint, s.way, s.block, now)
			}
			above, below, _ := h.observe(test.last.endpoint, test.last.way, test.last.block, now.Add(test.last.after))
			if above != test.above || below != test.below {
				t.Errorf("the height is %d above and %d below the possible range, want %d and %d", above, below, test.above, test.below)
			}
		})
	}
}

// TestSingleEndpointSufficesWhenOthersDoNotAnswer: one endpoint suffices when no other has corroborated
// repeated searches for a minute.
func TestSingleEndpointSufficesWhenOthersDoNotAnswer(t *testing.T) {
	t.Parallel()
	h := &heights{}
	now := time.Unix(1_800_000_000, 0)
	check := func(after time.Duration, corroborated, want bool) {
		t.Helper()
		if now = now.Add(after); h.recordCorroboration(corroborated, now) != want {
			t.Errorf("after %s one endpoint suffices: %v, want %v", after, !want, want)
		}
	}
	check(0, false, false)
	check(30*time.Second, false, false)
	check(30*time.Second-1, false, false)
	check(1, false, true)
	check(time.Second, true, true)
	check(time.Second, false, false) // another endpoint corroborated just now
	check(90*time.Second+1, false, false)
	check(30*time.Second, false, false) // no search for a while: the minute starts again
	check(30*time.Second, false, true)
	check(time.Second, true, true)
	check(time.Second, false, false)
	check(time.Minute, false, true) // held submissions are searched this often
}

// TestFinalizedBlocksShowExpiredBlockhashes: an endpoint's finalized blocks show up to which slot and
// time blockhashes have expired, if they are consistent with its earlier reports. The endpoint
// reports one finalized block a minute, and has reached a slot that is 32 higher.
func TestFinalizedBlocksShowExpiredBlockhashes(t *testing.T) {
	t.Parallel()
	h := &heights{slack: 10, reports: make([]heightReport, 1)}
	began := time.Unix(1_800_000_000, 0)
	for i, test := range []struct {
		block block
		want  uint64
		// wantMinute is the minute of the wanted time; 0 for none.
		wantMinute int
	}{
		{block{1000, 500}, 0, 0},
		{block{1100, 600}, 0, 0},
		{block{1150, 650}, 0, 0},
		{block{1151, 651}, 968, 0},
		{block{1149, 649}, 0, 0}, // another node, a little behind
		{block{1200, 700}, 968, 0},
		{block{1252, 751}, 1068, 0},
		{block{1333, 832}, 1118, 0},
		{block{1334, 833}, 1118, 1},
		{block{1433, 932}, 1220, 1},
		{block{1434, 933}, 1220, 2},
		{block{1300, 2000}, 0, 0}, // contradicts the earlier blocks, so they are dropped
		{block{1440, 2140}, 0, 0},
		{block{1460, 2151}, 1268, 0},
	} {
		var want time.Time
		if test.wantMinute > 0 {
			want = began.Add(time.Duration(test.wantMinute) * time.Minute)
		}
		slot, before := h.recordFinalized(0, test.block, test.block.slot+32, began.Add(time.Duration(i+1)*time.Minute))
		if slot != test.want || !before.Equal(want) {
			t.Errorf("after block %d, %+v, blockhashes have expired up to slot %d and time %s, want %d and %s", i, test.block, slot, before, test.want, want)
		}
	}
}

// TestFinalizedReportsAreLimited: an endpoint reports ever greater heights for one slot.
func TestFinalizedReportsAreLimited(t *testing.T) {
	t.Parallel()
	h := &heights{slack: 10, reports: make([]heightReport, 1)}
	for height := range uint64(10_000) {
		h.recordFinalized(0, block{1000, height}, 1_000_000_000, time.Unix(int64(height), 0))
	}
	if n := len(h.reports[0].final); n > maxFinalizedReports {
		t.Errorf("%d blocks are kept, want at most %d", n, maxFinalizedReports)
	}
}
