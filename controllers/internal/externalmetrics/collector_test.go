package externalmetrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/relay/contract"
)

// watched are the fleets of a Poller.
type watched map[types.NamespacedName]pool.Reading

func (watched) Reading(types.NamespacedName) (pool.Reading, bool) { return pool.Reading{}, false }

func (w watched) Watched() map[types.NamespacedName]pool.Reading { return w }

func (watched) Expires() time.Time { return time.Time{} }

// For a backlog that was never read, the metric is the time from which it could have been
// read, because the autoscaler's requests fail from then on.
func TestTimesOfReadings(t *testing.T) {
	t.Parallel()
	began := time.Unix(1_800_000_000, 0)
	now := began
	fleets := watched{}
	p, err := NewProvider(ProviderOptions{Pools: cache{}, Readings: fleets, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	c := NewCollector(p, fleets)
	read, silent, held, gone := types.NamespacedName{Namespace: "n", Name: "read"}, types.NamespacedName{Namespace: "n", Name: "silent"},
		types.NamespacedName{Namespace: "n", Name: "held"}, types.NamespacedName{Namespace: "n", Name: "gone"}
	steps := []struct {
		name   string
		after  time.Duration
		change func()
		want   map[string]int64 // seconds ago
	}{
		{"a reading, two fleets whose pods do not answer, and a fleet without a pod", 0, func() {
			fleets[read] = pool.Reading{Ready: 1, Backlog: pool.Backlog{At: began.Add(-5 * time.Second)}}
			fleets[silent], fleets[gone] = pool.Reading{Ready: 1}, pool.Reading{Ready: 1}
			fleets[held] = pool.Reading{}
		}, map[string]int64{"gone": 0, "read": 5, "silent": 0}},
		{"a minute later", time.Minute, func() {}, map[string]int64{"gone": 60, "read": 65, "silent": 60}},
		{"gone is no longer watched, and held has a ready pod", 2 * time.Minute, func() {
			delete(fleets, gone)
			fleets[held] = pool.Reading{Ready: 1}
		}, map[string]int64{"held": 0, "read": 125, "silent": 120}},
		{"gone is watched again, silent answers, and held loses its pod", 3 * time.Minute, func() {
			fleets[gone] = pool.Reading{Ready: 1}
			fleets[held] = pool.Reading{}
			fleets[silent] = pool.Reading{Ready: 1, Backlog: pool.Backlog{At: now.Add(-time.Second)}}
		}, map[string]int64{"gone": 0, "read": 185, "silent": 1}},
		{"the pod of held is back", 4 * time.Minute, func() { fleets[held] = pool.Reading{Ready: 1} },
			map[string]int64{"gone": 60, "held": 0, "read": 245, "silent": 61}},
	}
	for _, step := range steps {
		now = began.Add(step.after)
		step.change()
		m := contract.MetricOperatorBacklogRead
		var want strings.Builder
		want.WriteString("# HELP " + m.Name + " " + m.Help + "\n# TYPE " + m.Name + " gauge\n")
		for pool, age := range step.want {
			fmt.Fprintf(&want, "%s{namespace=\"n\",pool=%q} %d\n", m.Name, pool, now.Unix()-age)
		}
		if err := testutil.CollectAndCompare(c, strings.NewReader(want.String()), m.Name); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}
