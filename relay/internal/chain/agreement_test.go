package chain

import (
	"testing"
	"time"
)

// said is one answer: the endpoint, the time since the last answer, and the block.
type said struct {
	endpoint, way int
	after         time.Duration
	block         block
}

func TestReportsOfHeights(t *testing.T) {
	t.Parallel()
	const at = byEpochInfo
	both := []said{{0, at, 0, block{1000, 500}}, {1, at, 0, block{1000, 500}}}
	tests := map[string]struct {
		before       []said
		last         said
		above, below uint64
	}{
		"what nobody has said anything of is believed":              {nil, said{0, at, 0, block{1000, 900}}, 0, 0},
		"a slot later it may be as high, as slots are skipped":      {both, said{0, at, 0, block{1001, 500}}, 0, 0},
		"a hundred slots later it may be a hundred higher":          {both, said{0, at, 0, block{1100, 600}}, 0, 0},
		"a hundred slots later, higher by the slack":                {both, said{0, at, 0, block{1100, 610}}, 0, 0},
		"a hundred slots later, higher than that":                   {both, said{0, at, 0, block{1100, 611}}, 1, 0},
		"lower by the slack":                                        {both, said{0, at, 0, block{1100, 490}}, 0, 0},
		"lower than that":                                           {both, said{0, at, 0, block{1100, 489}}, 0, 1},
		"a hundred slots before, a hundred lower and the slack":     {both, said{0, at, 0, block{900, 390}}, 0, 0},
		"a hundred slots before, lower than that":                   {both, said{0, at, 0, block{900, 389}}, 0, 1},
		"a hundred slots before, higher than then and the slack":    {both, said{0, at, 0, block{900, 511}}, 1, 0},
		"a third one is held against the two":                       {both, said{2, at, 0, block{1010, 700}}, 180, 0},
		"an agreement is dropped that nobody upholds for long":      {both, said{2, at, time.Minute + 1, block{1010, 700}}, 0, 0},
		"an agreement that is a minute old holds":                   {both, said{2, at, time.Minute, block{1010, 700}}, 180, 0},
		"two that are too far apart in slots bear nothing out":      {[]said{{0, at, 0, block{1000, 500}}, {1, at, 0, block{1065, 565}}}, said{2, at, 0, block{1010, 700}}, 0, 0},
		"two that are as far apart as they may bear each other out": {[]said{{0, at, 0, block{1000, 500}}, {1, at, 0, block{1064, 564}}}, said{2, at, 0, block{1010, 700}}, 126, 0},
		"two that contradict each other bear nothing out":           {[]said{{0, at, 0, block{1000, 500}}, {1, at, 0, block{1000, 511}}}, said{2, at, 0, block{1200, 1000}}, 0, 0},
		"what was said long ago bears nothing out":                  {[]said{{0, at, 0, block{1000, 500}}, {1, at, reportMaxAge + 1, block{1000, 500}}}, said{2, at, 0, block{1010, 700}}, 0, 0},
		"before there is an agreement its own word binds it":        {[]said{{0, at, 0, block{1000, 500}}}, said{0, byBlockhash, 0, block{1000, 900}}, 390, 0},
		"its own word of long ago does not":                         {[]said{{0, at, 0, block{1000, 500}}}, said{0, byBlockhash, reportMaxAge + 1, block{1000, 900}}, 0, 0},
		"a blockhash that was refused is refused again":             {[]said{{0, at, 0, block{1000, 500}}, {0, byBlockhash, 0, block{1000, 900}}}, said{0, byBlockhash, 0, block{1001, 901}}, 390, 0},
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
				t.Errorf("it is %d above and %d below what can be, want %d and %d", above, below, test.above, test.below)
			}
		})
	}
}

// TestOneIsEnoughWhenNoneElseAnswers, after a minute of repeated requests.
func TestOneIsEnoughWhenNoneElseAnswers(t *testing.T) {
	t.Parallel()
	h := &heights{}
	now := time.Unix(1_800_000_000, 0)
	wants := func(after time.Duration, yes, want bool) {
		t.Helper()
		if now = now.Add(after); h.recordCorroboration(yes, now) != want {
			t.Errorf("after %s one is enough: %v", after, !want)
		}
	}
	wants(0, false, false)
	wants(30*time.Second, false, false)
	wants(30*time.Second-1, false, false)
	wants(1, false, true)
	wants(time.Second, true, true)
	wants(time.Second, false, false) // one has answered since
	wants(90*time.Second+1, false, false)
	wants(30*time.Second, false, false) // no request for a while: the time starts anew
	wants(30*time.Second, false, true)
	wants(time.Second, true, true)
	wants(time.Second, false, false)
	wants(time.Minute, false, true) // held submissions are looked up this often
}

// TestBlockhashesAreOverAfterTheirLife: an endpoint's own finalized blocks show up to which
// slot and to which time blockhashes can no longer be named, if they are consistent with its
// earlier reports. It reports one block a minute, each time 32 slots further.
func TestBlockhashesAreOverAfterTheirLife(t *testing.T) {
	t.Parallel()
	h := &heights{slack: 10, reports: make([]heightReport, 1)}
	began := time.Unix(1_800_000_000, 0)
	for i, test := range []struct {
		block block
		want  uint64
		// wantMinute is the minute of that time, the first being 1; 0 for none.
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
		{block{1300, 2000}, 0, 0}, // contradicts the earlier blocks, so a new record begins
		{block{1440, 2140}, 0, 0},
		{block{1460, 2151}, 1268, 0},
	} {
		var want time.Time
		if test.wantMinute > 0 {
			want = began.Add(time.Duration(test.wantMinute) * time.Minute)
		}
		slot, before := h.finalized(0, test.block, test.block.slot+32, began.Add(time.Duration(i+1)*time.Minute))
		if slot != test.want || !before.Equal(want) {
			t.Errorf("after block %d, %+v, blockhashes are over up to slot %d and of %s, want %d and %s", i, test.block, slot, before, test.want, want)
		}
	}
}

// TestAFinalityThatStandsIsNotRemembered, although the height reported for one slot keeps rising.
func TestAFinalityThatStandsIsNotRemembered(t *testing.T) {
	t.Parallel()
	h := &heights{slack: 10, reports: make([]heightReport, 1)}
	for height := range uint64(10_000) {
		h.finalized(0, block{1000, height}, 1_000_000_000, time.Unix(int64(height), 0))
	}
	if n := len(h.reports[0].final); n > maxFinalizedReports {
		t.Errorf("%d blocks are remembered, want %d at most", n, maxFinalizedReports)
	}
}
