package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/judge"
	"github.com/relaypool/relaypool/hack/e2e/report"
)

const (
	// peakRate is more spends a second than one pod lands with its concurrency, and
	// calmRate fewer; both are averages.
	peakRate, calmRate = 20, 2.5
	// swapShare of the spends are swaps.
	swapShare = 0.15
)

const waitingSQL = `SELECT count(*) FROM submissions WHERE state IN ('pending', 'processing') AND hold_reason IS NULL AND lease_owner IS NULL AND due_at <= now()`

// waiting counts the submissions that nobody has taken up, as the database has them.
func (s *suite) waiting(ctx context.Context) (n int, err error) {
	err = s.stage.WithDatabase(ctx, fleetName, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, waitingSQL).Scan(&n) })
	return n, err
}

// scaleUp floods the fleet until it has its most pods, then lets it go on calmly.
func (s *suite) scaleUp(ctx context.Context, r *report.Scenario) (err error) {
	if err := s.startTraffic(ctx, peakRate); err != nil {
		return err
	}
	began := s.Now()
	var first, backlog time.Time
	most := 0
	err = cluster.Await(ctx, fmt.Sprintf("the fleet has %d ready pods", mostReplicas), cluster.Minutes(5), func(ctx context.Context) (string, error) {
		waiting, err := s.waiting(ctx)
		if err != nil {
			return "", err
		}
		most = max(most, waiting)
		if backlog.IsZero() && waiting > jobsPerReplica {
			backlog = s.Now()
			r.Saw("%d submissions wait, more than %d a pod", waiting, jobsPerReplica)
		}
		d, err := s.fleet.deployment(ctx)
		if err != nil {
			return "", err
		}
		if first.IsZero() && *d.Spec.Replicas > 1 {
			first = s.Now()
			r.Saw("the autoscaler wants %d pods", *d.Spec.Replicas)
		}
		if d.Status.ReadyReplicas < mostReplicas {
			return fmt.Sprintf("%d are ready, %d wanted, %d submissions wait", d.Status.ReadyReplicas, *d.Spec.Replicas, waiting), nil
		}
		return "", nil
	})
	s.traffic.load.SetRate(calmRate)
	if err != nil {
		return err
	}
	ready := s.Now()
	r.Saw("%d pods are ready; the backlog was %d at most", mostReplicas, most)
	if backlog.IsZero() {
		return fmt.Errorf("the fleet grew without a backlog of more than %d", jobsPerReplica)
	}
	s.Report.Figure("backlog above one pod's share to the autoscaler's first step", "%.1f s", first.Sub(backlog).Seconds())
	s.Report.Figure("backlog above one pod's share to 3 ready pods", "%.1f s", ready.Sub(backlog).Seconds())
	r.Sum("1 to %d pods in %.1f s from the backlog on, first step after %.1f s; %d waited at most", mostReplicas, ready.Sub(backlog).Seconds(), first.Sub(backlog).Seconds(), most)
	return cluster.Await(ctx, "the backlog is worked off", cluster.Minutes(5), func(ctx context.Context) (string, error) {
		waiting, err := s.waiting(ctx)
		if err == nil && waiting > jobsPerReplica/2 {
			return fmt.Sprintf("%d submissions wait", waiting), nil
		}
		if err == nil {
			s.calm = s.Now()
			r.Saw("the backlog is worked off, %.1f s after it began", s.calm.Sub(began).Seconds())
		}
		return "", err
	})
}

// startTraffic begins the clients that go on to the accounting, unless they run.
func (s *suite) startTraffic(ctx context.Context, rate float64) (err error) {
	if s.traffic != nil {
		s.traffic.load.SetRate(rate)
		return nil
	}
	s.traffic, err = s.begin(ctx, crowd{fleet: fleetName, rate: rate, swaps: swapShare, seed: s.Seed})
	return err
}

// pace is the autoscaler's: the scale-down of its definition, by its own clock.
// Ten seconds either way are for times to the second and for two clocks; a pace
// that is another one misses them by more.
func pace() judge.Pace {
	return judge.Pace{Calm: 5 * time.Minute, Apart: time.Minute, Slack: 10 * time.Second}
}

// scaleDown waits until the fleet is small again, under calm traffic, and holds
// each step of it to the pace, those before this scenario included.
func (s *suite) scaleDown(ctx context.Context, r *report.Scenario) error {
	if err := s.startTraffic(ctx, calmRate); err != nil {
		return err
	}
	if err := cluster.Await(ctx, "the fleet has one pod", cluster.Minutes(20), func(ctx context.Context) (string, error) {
		d, err := s.fleet.deployment(ctx)
		if err != nil {
			return "", err
		}
		if *d.Spec.Replicas == 1 && d.Status.Replicas == 1 && d.Status.ReadyReplicas == 1 {
			return "", nil
		}
		h, err := s.fleet.hpa(ctx)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d wanted, %d there; the autoscaler's last step was at %s", *d.Spec.Replicas, d.Status.Replicas, h.Status.LastScaleTime), nil
	}); err != nil {
		return err
	}
	if _, err := s.fleet.condition(ctx, v1alpha1.ConditionAutoscalingActive, metav1.ConditionTrue, ""); err != nil {
		return err
	}
	var sizes []judge.Size
	if err := cluster.Await(ctx, "every change of the fleet's size was seen", cluster.Minutes(1), func(context.Context) (string, error) {
		sizes = s.sizes.Seen()
		if len(sizes) == 0 || sizes[len(sizes)-1].Pods != 1 {
			return "its way to 1 pod was not", s.sizes.Err()
		}
		return "", nil
	}); err != nil {
		return err
	}
	for i := 1; i < len(sizes); i++ {
		r.Saw("%s: %d to %d pods, %.0f s after the change before", sizes[i].At.UTC().Format(time.TimeOnly), sizes[i-1].Pods, sizes[i].Pods, sizes[i].At.Sub(sizes[i-1].At).Seconds())
	}
	steps, err := judge.Shrinking(sizes, pace())
	if err != nil {
		return err
	}
	progress := words(s.traffic.load.Journal().Progress())
	if len(steps) == 0 {
		r.Sum("the fleet never had more than one pod: nothing is shown of its pace; clients went on: %s", progress)
		return nil
	}
	last := steps[len(steps)-1].At
	if !s.calm.IsZero() {
		s.Report.Figure("backlog worked off to the autoscaler's last step, to 1 pod", "%.0f s", last.Sub(s.calm).Seconds())
	}
	r.Sum("%d pods to 1 in %d steps of one pod, each as late as it has to be; clients went on: %s", judge.Largest(sizes), len(steps), progress)
	return nil
}
