package chainwatch

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// These are the two lanes in which Options.Workers limits the checks.
const (
	laneAnswered = iota
	laneOthers
)

func (p *pool) lane() int {
	if p.reading.At.IsZero() || p.failures > 0 {
		return laneOthers
	}
	return laneAnswered
}

// startDue starts the checks that are due, the most overdue first, and returns the time
// until the next check is due.
func (w *Watcher) startDue(ctx context.Context, wg *sync.WaitGroup) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.o.Now()
	next := now.Add(defaultInterval)
	var due []types.NamespacedName
	for key, p := range w.pools {
		switch {
		case p.busy:
		case p.due.After(now):
			next = earlier(next, p.due)
		default:
			due = append(due, key)
		}
	}
	slices.SortFunc(due, func(a, b types.NamespacedName) int { return w.pools[a].due.Compare(w.pools[b].due) })
	for _, key := range due {
		p := w.pools[key]
		lane := p.lane()
		if w.running[lane] >= w.o.Workers {
			continue // a check that ends wakes the loop
		}
		w.running[lane]++
		p.busy = true
		wg.Go(func() { w.run(ctx, key, p, lane) })
	}
	return next.Sub(now)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
