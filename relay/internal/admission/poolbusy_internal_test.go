package admission

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// The root history has 9 roots, and the tree 108 leaves: 8, 6, 4, 2 and 0 leaves are left until it evicts
// the roots 108, 106, 104, 102 and 100.
func TestQueueIsFullForARootThatWouldBeEvicted(t *testing.T) {
	t.Parallel()
	waiting := func(seqs ...uint64) (q submission.QueueByRoot) {
		for _, seq := range seqs {
			if n := len(q.Waiting) - 1; n >= 0 && q.Waiting[n].Seq == seq {
				q.Waiting[n].Submissions++
				continue
			}
			q.Waiting = append(q.Waiting, submission.AtRoot{Seq: seq, Submissions: 1})
		}
		return q
	}
	inFlight := func(n int, q submission.QueueByRoot) submission.QueueByRoot {
		q.InFlight = n
		return q
	}
	tests := map[string]struct {
		queue       submission.QueueByRoot
		seq         uint64
		ahead, most int
		want        bool
	}{
		"an empty queue":                                     {waiting(), 108, 0, 4, false},
		"an empty queue, and the oldest root":                {waiting(), 100, 0, 0, false},
		"as many ahead as can land":                          {waiting(104, 106, 108, 108), 108, 4, 4, false},
		"one too many ahead":                                 {waiting(104, 106, 106, 108, 108), 108, 5, 4, true},
		"too many in flight":                                 {inFlight(3, waiting()), 104, 3, 2, true},
		"those in flight go before any that wait":            {inFlight(3, waiting(104)), 106, 4, 3, true},
		"newer roots go later":                               {waiting(104, 108, 108), 104, 1, 2, false},
		"a newer root that would be evicted":                 {waiting(104, 108, 108, 108, 108), 104, 5, 4, true},
		"a newer root that would be evicted behind others":   {waiting(104, 104, 106, 106, 108), 102, 4, 3, true},
		"a root older than all that would itself be evicted": {inFlight(2, waiting(108)), 102, 2, 1, true},
		"a root that is evicted already delays nobody":       {waiting(90, 90, 90, 104), 104, 1, 2, false},
		"between two roots":                                  {waiting(102, 108), 106, 1, 3, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var q queue
			q.set(test.queue, &shieldpool.TreeAccount{NextIndex: 108, History: make([][32]byte, 9)}, time.Time{})
			ahead, most, full := q.full(test.seq)
			if full != test.want || full && (ahead != test.ahead || most != test.most) {
				t.Errorf("full is %v, %d ahead of at most %d; want %v, %d of %d", full, ahead, most, test.want, test.ahead, test.most)
			}
		})
	}
}

func TestQueueCountsWhatEnteredUntilItIsCounted(t *testing.T) {
	t.Parallel()
	var q queue
	tree := &shieldpool.TreeAccount{NextIndex: 10, History: make([][32]byte, 100)}
	counted := submission.QueueByRoot{InFlight: 1, Waiting: []submission.AtRoot{{Seq: 4, Submissions: 1}}}
	q.set(counted, tree, time.Time{})
	for _, seq := range []uint64{6, 2, 4, 6} {
		if _, _, ok := q.enter(seq); !ok {
			t.Fatalf("root %d does not enter", seq)
		}
	}
	want := submission.QueueByRoot{InFlight: 1, Waiting: []submission.AtRoot{{Seq: 2, Submissions: 1}, {Seq: 4, Submissions: 2}, {Seq: 6, Submissions: 2}}}
	if diff := cmp.Diff(q.byRoot, want); diff != "" {
		t.Errorf("with what entered (-got +want):\n%s", diff)
	}
	for _, seq := range []uint64{6, 2, 4, 8} { // 8 did not enter
		q.leave(seq, seq != 8)
	}
	counted.Waiting = []submission.AtRoot{{Seq: 4, Submissions: 1}}
	q.set(counted, tree, time.Time{})
	want.Waiting = []submission.AtRoot{{Seq: 4, Submissions: 1}, {Seq: 6, Submissions: 1}}
	if diff := cmp.Diff(q.byRoot, want); diff != "" {
		t.Errorf("after the next count, with what is about to be accepted (-got +want):\n%s", diff)
	}
}

func TestQueueCountsWhatIsAcceptedIfNothingWaits(t *testing.T) {
	t.Parallel()
	var q queue
	q.set(submission.QueueByRoot{InFlight: 1}, &shieldpool.TreeAccount{NextIndex: 10, History: make([][32]byte, 100)}, time.Time{})
	for seq, accepted := range map[uint64]bool{2: true, 4: false} {
		_, _, ok := q.enter(seq)
		if before := len(q.byRoot.Waiting); !ok || before > 1 {
			t.Fatalf("root %d enters: %v; %d wait", seq, ok, before)
		}
		q.leave(seq, accepted)
	}
	if diff := cmp.Diff(q.byRoot.Waiting, []submission.AtRoot{{Seq: 2, Submissions: 1}}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}
