package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/e2e/cluster"
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

// scaleDown waits until the fleet is small again, under calm traffic.
func (s *suite) scaleDown(ctx context.Context, r *report.Scenario) error {
	if err := s.startTraffic(ctx, calmRate); err != nil {
		return err
	}
	last := int32(0)
	began := s.Now()
	var steps []string
	if err := cluster.Await(ctx, "the fleet has one pod", cluster.Minutes(20), func(ctx context.Context) (string, error) {
		d, err := s.fleet.deployment(ctx)
		if err != nil {
			return "", err
		}
		if *d.Spec.Replicas != last {
			if last != 0 {
				steps = append(steps, fmt.Sprintf("%d to %d", last, *d.Spec.Replicas))
				if *d.Spec.Replicas > last {
					r.Saw("the fleet grew again, to %d", *d.Spec.Replicas)
				}
			}
			last = *d.Spec.Replicas
			r.Saw("%d pods are wanted", last)
		}
		if last != 1 || d.Status.Replicas != 1 || d.Status.ReadyReplicas != 1 {
			h, err := s.fleet.hpa(ctx)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%d wanted, %d there; the autoscaler's last step was at %s", last, d.Status.Replicas, h.Status.LastScaleTime), nil
		}
		return "", nil
	}); err != nil {
		return err
	}
	if _, err := s.fleet.condition(ctx, v1alpha1.ConditionAutoscalingActive, metav1.ConditionTrue, ""); err != nil {
		return err
	}
	h, err := s.fleet.hpa(ctx)
	if err != nil {
		return err
	}
	if last := h.Status.LastScaleTime; last != nil && !s.calm.IsZero() {
		// It may have been before this scenario: others ran meanwhile.
		s.Report.Figure("backlog worked off to the autoscaler's last step, to 1 pod", "%.0f s", last.Sub(s.calm).Seconds())
	}
	r.Sum("1 pod, after %d steps down seen here in %.0f s; clients went on: %s", len(steps), s.Now().Sub(began).Seconds(), words(s.traffic.load.Journal().Progress()))
	return nil
}
