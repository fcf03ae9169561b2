package admission

import (
	"fmt"
	"slices"
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
		queue submission.QueueByRoot
		seq   uint64
		want  string
	}{
		"an empty queue":                                     {waiting(), 108, ""},
		"an empty queue, and the oldest root":                {waiting(), 100, ""},
		"as many ahead as can land":                          {waiting(104, 106, 108, 108), 108, ""},
		"one too many ahead":                                 {waiting(104, 106, 106, 108, 108), 108, "5 of 4"},
		"too many in flight":                                 {inFlight(3, waiting()), 104, "3 of 2"},
		"those in flight go before any that wait":            {inFlight(3, waiting(104)), 106, "4 of 3"},
		"newer roots go later":                               {waiting(104, 108, 108), 104, ""},
		"a newer root that would be evicted":                 {waiting(104, 108, 108, 108, 108), 104, "5 of 4"},
		"a newer root that would be evicted behind others":   {waiting(104, 104, 106, 106, 108), 102, "4 of 3"},
		"a root older than all that would itself be evicted": {inFlight(2, waiting(108)), 102, "2 of 1"},
		"a root that is evicted already delays nobody":       {waiting(90, 90, 90, 104), 104, ""},
		"between two roots":                                  {waiting(102, 108), 106, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var q queue
			q.set(test.queue, &shieldpool.TreeAccount{NextIndex: 108, History: make([][32]byte, 9)}, time.Time{})
			if got := fullness(&q, test.seq); got != test.want {
				t.Errorf("full is %q, want %q", got, test.want)
			}
		})
	}
}

// fullness says how many are ahead of how many that may be; "" if the queue is not full.
func fullness(q *queue, seq uint64) string {
	ahead, most, full := q.full(seq)
	if !full {
		return ""
	}
	return fmt.Sprintf("%d of %d", ahead, most)
}

func TestAnEighthOfTheQueueIsKeptWhileSomeWait(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		inFlight, waiting int
		want              string
	}{
		"all in flight":               {49, 0, ""},
		"too many in flight":          {50, 0, "50 of 49"},
		"some wait":                   {42, 1, ""},
		"some wait, and are too many": {42, 2, "44 of 43"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var q queue
			counted := submission.QueueByRoot{InFlight: test.inFlight}
			if test.waiting > 0 {
				counted.Waiting = []submission.AtRoot{{Seq: 200, Submissions: test.waiting}}
			}
			q.set(counted, &shieldpool.TreeAccount{NextIndex: 200, History: make([][32]byte, 100)}, time.Time{})
			if got := fullness(&q, 200); got != test.want {
				t.Errorf("full is %q, want %q", got, test.want)
			}
		})
	}
}

func TestOneCountOfTheQueueRunsAtATime(t *testing.T) {
	t.Parallel()
	var q queue
	now := time.Unix(1_800_000_000, 0)
	if running, first, age := q.startCount(now); running == nil || !first || age < maxAgeDuringCount {
		t.Fatalf("the first count: running %v, first %v, age %s", running != nil, first, age)
	}
	running, first, _ := q.startCount(now)
	if running == nil || first {
		t.Fatalf("during a count: running %v, first %v", running != nil, first)
	}
	q.set(submission.QueueByRoot{}, &shieldpool.TreeAccount{History: make([][32]byte, 100)}, now)
	q.endCount()
	<-running // or those that wait would wait for ever
	if running, _, _ := q.startCount(now.Add(queueCountMaxAge - 1)); running != nil {
		t.Error("a recent count is made again")
	}
	if _, first, _ := q.startCount(now.Add(queueCountMaxAge)); !first {
		t.Error("an old count is not made again")
	}
}

func TestQueueCountsWhatTheDatabaseMayNotKnowYet(t *testing.T) {
	t.Parallel()
	tree := &shieldpool.TreeAccount{NextIndex: 10, History: make([][32]byte, 100)}
	nothing, waiting := submission.QueueByRoot{InFlight: 1}, submission.QueueByRoot{InFlight: 1, Waiting: []submission.AtRoot{{Seq: 4, Submissions: 1}}}
	tests := map[string]struct {
		counted submission.QueueByRoot
		// before and after have what is counted before and after the next count.
		before, after map[uint64]int
	}{
		"some wait: what is about to be accepted counts":  {waiting, map[uint64]int{2: 1, 4: 2, 8: 1}, map[uint64]int{4: 1, 6: 1, 8: 1}},
		"nothing waits: only what has been accepted does": {nothing, map[uint64]int{2: 1, 4: 1}, map[uint64]int{6: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counts := func(q *queue) map[uint64]int {
				out := make(map[uint64]int)
				for _, r := range q.byRoot.Waiting {
					if r.Submissions != 0 {
						out[r.Seq] = r.Submissions
					}
				}
				return out
			}
			counted := func() submission.QueueByRoot {
				return submission.QueueByRoot{InFlight: test.counted.InFlight, Waiting: slices.Clone(test.counted.Waiting)}
			}
			var q queue
			_, _, _ = q.startCount(time.Time{}.Add(time.Hour))
			q.set(counted(), tree, time.Time{})
			q.endCount()
			for _, seq := range []uint64{2, 4, 6, 8} {
				if _, _, ok := q.enter(seq); !ok {
					t.Fatalf("root %d does not enter", seq)
				}
			}
			q.leave(2, true)
			q.leave(4, true)
			q.leave(5, true) // did not enter
			q.leave(6, false)
			if diff := cmp.Diff(counts(&q), test.before); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			_, _, _ = q.startCount(time.Time{}.Add(time.Hour))
			_, _, _ = q.enter(6)
			q.leave(6, true) // after the database has counted
			q.set(counted(), tree, time.Time{})
			q.endCount()
			if diff := cmp.Diff(counts(&q), test.after); diff != "" {
				t.Errorf("after the next count (-got +want):\n%s", diff)
			}
		})
	}
}
