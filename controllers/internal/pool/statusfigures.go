package pool

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// figuresInterval is the minimum time between writes of the status in which only figures
// change. Any other write includes the figures.
const figuresInterval = time.Minute

// A figure is written again only when it has changed enough. balanceChange, runwayChange and
// indexChange are the smallest changes that are enough, as fractions of the last value. The next
// index must also change by at least indexStep. The backlog must change by the factor
// backlogFactor. A balance is also written when it crosses one of the thresholds.
const (
	balanceChange = 0.05
	runwayChange  = 0.20
	indexChange   = 0.01
	indexStep     = 64
	backlogFactor = 2
)

// figures updates the figures of the status: the next index, the backlog, and the payers'
// balances and runways. When anything else in the status changes, figures updates all of them.
// When only figures change, it updates them at most once a minute, and only if one of them
// changed enough. A new key or a new state of a payer is not a figure, and is written at once.
func figures(next *v1alpha1.RelayPoolStatus, f *Facts, p *Plan) {
	last := &f.Pool.Status
	fresh := measureFigures(last, f, p)
	if f.KeysKnown && f.References.Known() {
		next.FeePayers = withLastFigures(p.Keys.Payers, last.FeePayers)
	}
	changed := !equality.Semantic.DeepEqual(last, next)
	if !changed && (!figuresChangedEnough(last, &fresh, f) || f.Now.Before(figuresAt(last, f.Now))) {
		return
	}
	next.NextIndex, next.Backlog, next.FeePayers = fresh.NextIndex, fresh.Backlog, fresh.FeePayers
	if last.ObservedAt == nil || !equality.Semantic.DeepEqual(last.FeePayers, next.FeePayers) ||
		!equality.Semantic.DeepEqual(last.NextIndex, next.NextIndex) || !equality.Semantic.DeepEqual(last.Backlog, next.Backlog) {
		next.ObservedAt = &metav1.Time{Time: f.Now}
	}
}

// figuresAt returns when figures may be written again; zero means at once. If the last
// write has a time in the future, another operator's clock was ahead or this operator's clock
// was set back, and that write delays nothing.
func figuresAt(last *v1alpha1.RelayPoolStatus, now time.Time) time.Time {
	if last.ObservedAt == nil || last.ObservedAt.After(now) {
		return time.Time{}
	}
	return last.ObservedAt.Add(figuresInterval)
}

// figuresDue returns when changed figures may be written; zero if none changed enough.
func figuresDue(f *Facts, p *Plan, status *v1alpha1.RelayPoolStatus) time.Time {
	fresh := measureFigures(status, f, p)
	if status.ObservedAt == nil || !figuresChangedEnough(status, &fresh, f) {
		return time.Time{}
	}
	return figuresAt(status, f.Now)
}

// measureFigures returns the newest figures, rounded. A figure that is unknown now keeps its
// last value.
func measureFigures(last *v1alpha1.RelayPoolStatus, f *Facts, p *Plan) v1alpha1.RelayPoolStatus {
	fresh := v1alpha1.RelayPoolStatus{NextIndex: last.NextIndex, Backlog: last.Backlog, FeePayers: last.FeePayers}
	if n, ok := f.Chain.Report.NextIndex(); f.ChainRead && ok {
		fresh.NextIndex = ptr.To(roundDown(int64(min(n, 1<<62)), 3))
	}
	if !f.Backlog.At.IsZero() {
		fresh.Backlog = ptr.To(roundDown(f.Backlog.Due, 2))
	}
	if f.KeysKnown && f.References.Known() {
		fresh.FeePayers = withLastFigures(p.Keys.Payers, last.FeePayers)
		for i := range fresh.FeePayers {
			payer := &fresh.FeePayers[i]
			if newest := p.Keys.Payers[i]; newest.BalanceLamports != nil {
				payer.BalanceLamports = ptr.To(*newest.BalanceLamports / roundingUnit * roundingUnit)
				payer.RunwayHours = nil
				if newest.RunwayHours != nil {
					payer.RunwayHours = ptr.To(roundDown(*newest.RunwayHours, 2))
				}
			}
		}
	}
	return fresh
}

// withLastFigures returns the payers with the figures of the last status.
func withLastFigures(payers, before []v1alpha1.FeePayerStatus) []v1alpha1.FeePayerStatus {
	if len(payers) == 0 {
		return nil
	}
	out := slices.Clone(payers)
	for i := range out {
		out[i].BalanceLamports, out[i].RunwayHours = nil, nil
		if j := slices.IndexFunc(before, func(b v1alpha1.FeePayerStatus) bool { return b.Address == out[i].Address }); j >= 0 {
			out[i].BalanceLamports, out[i].RunwayHours = before[j].BalanceLamports, before[j].RunwayHours
		}
	}
	return out
}

// figuresChangedEnough reports whether a figure differs enough from the figure in the
// status.
func figuresChangedEnough(shown, fresh *v1alpha1.RelayPoolStatus, f *Facts) bool {
	if differsBy(shown.NextIndex, fresh.NextIndex, func(a, b int64) bool {
		return distance(a, b) >= max(indexStep, float64(a)*indexChange)
	}) || differsBy(shown.Backlog, fresh.Backlog, backlogChangedEnough) {
		return true
	}
	limits := thresholds(&f.Pool.Spec.FeePayers)
	for i := range fresh.FeePayers {
		payer := &fresh.FeePayers[i]
		j := slices.IndexFunc(shown.FeePayers, func(b v1alpha1.FeePayerStatus) bool { return b.Address == payer.Address })
		if j < 0 {
			return true
		}
		before := &shown.FeePayers[j]
		if differsBy(before.BalanceLamports, payer.BalanceLamports, func(a, b int64) bool {
			return distance(a, b) >= float64(a)*balanceChange || crossesLimit(a, b, limits)
		}) || differsBy(before.RunwayHours, payer.RunwayHours, func(a, b int64) bool {
			return distance(a, b) >= float64(a)*runwayChange
		}) {
			return true
		}
	}
	return false
}

// differsBy reports whether two figures differ enough. If both are known, the function
// changedEnough decides. A figure that is nil is unknown, and differs from any known figure.
func differsBy(a, b *int64, changedEnough func(a, b int64) bool) bool {
	if a == nil || b == nil {
		return (a == nil) != (b == nil)
	}
	return *a != *b && changedEnough(*a, *b)
}

func backlogChangedEnough(a, b int64) bool {
	return a != b && ((a == 0) != (b == 0) || b >= a*backlogFactor || b*backlogFactor <= a)
}

func distance(a, b int64) float64 { return float64(max(a, b) - min(a, b)) }

func crossesLimit(a, b int64, limits []uint64) bool {
	for _, limit := range limits {
		if (uint64(max(a, 0)) < limit) != (uint64(max(b, 0)) < limit) {
			return true
		}
	}
	return false
}

// roundingUnit is the unit, in lamports, to which amounts in the status and its messages are
// rounded, so that they do not change with every transaction.
const roundingUnit = 10_000_000

// roundDown keeps the first digits of a number, and replaces the others with 0.
func roundDown(n int64, digits int) int64 {
	unit, limit := int64(1), int64(1)
	for range digits {
		limit *= 10
	}
	for n/unit >= limit {
		unit *= 10
	}
	return n / unit * unit
}
