package admission

import (
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestARefusedRootStaysBusyUntilTheTreeChanges(t *testing.T) {
	t.Parallel()
	window := func(seq, nextIndex uint64) rootWindow {
		return rootWindow{seq: seq, tree: &shieldpool.TreeAccount{NextIndex: nextIndex}, known: true}
	}
	began := time.Unix(1_800_000_000, 0)
	tests := map[string]struct {
		window rootWindow
		after  time.Duration
		want   bool
	}{
		"the same root and tree":          {window: window(10, 100), want: true},
		"a tree that was read before":     {window: window(10, 98), want: true},
		"another root":                    {window: window(12, 100)},
		"a tree with more leaves":         {window: window(10, 102)},
		"the same just before its end":    {window: window(10, 100), after: treeMaxAge - 1, want: true},
		"the same once the count is old":  {window: window(10, 100), after: treeMaxAge},
		"the root of the refusal before":  {window: window(8, 100), want: true},
		"a root of a tree that is forgot": {window: window(6, 98)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b busyRoots
			b.add(window(6, 98), 51, began.Add(-time.Millisecond))
			b.add(window(8, 100), 52, began)
			b.add(window(10, 100), 53, began)
			ahead, ok := b.find(tc.window, began.Add(tc.after))
			if ok != tc.want || ok != (ahead > 0) {
				t.Errorf("busy is %v, %d ahead; want busy %v", ok, ahead, tc.want)
			}
		})
	}
}
