package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

const waitingSQL = `SELECT count(*) FROM submissions WHERE state IN ('pending', 'processing') AND hold_reason IS NULL AND lease_owner IS NULL AND due_at <= now()`

// waiting counts the due submissions that no process has leased.
func (s *suite) waiting(ctx context.Context) (n int, err error) {
	err = s.stage.withDatabase(ctx, fleetName, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, waitingSQL).Scan(&n) })
	return n, err
}

// scaleUp floods the fleet until it has maxReplicas pods, then returns to calm traffic.
func (s *suite) scaleUp(t *testing.T) {
	s.startTraffic(t, peakRate)
	var first, backlog time.Time
	most := 0
	s.await(t, fmt.Sprintf("the fleet has %d ready pods", maxReplicas), 5*time.Minute, func(ctx context.Context) error {
		waiting, err := s.waiting(ctx)
		if err != nil {
			return err
		}
		most = max(most, waiting)
		if backlog.IsZero() && waiting > submissionsPerReplica {
			backlog = time.Now()
			s.log(t, "%d submissions wait, more than %d a pod", waiting, submissionsPerReplica)
		}
		d, err := s.fleet.deployment(ctx)
		if err != nil {
			return err
		}
		if first.IsZero() && *d.Spec.Replicas > 1 {
			first = time.Now()
			s.log(t, "the autoscaler wants %d pods", *d.Spec.Replicas)
		}
		if d.Status.ReadyReplicas < maxReplicas {
			return fmt.Errorf("%d are ready, %d wanted, %d submissions wait", d.Status.ReadyReplicas, *d.Spec.Replicas, waiting)
		}
		return nil
	})
	s.traffic.SetRate(calmRate)
	s.log(t, "%d pods are ready; the backlog was %d at most", maxReplicas, most)
	if backlog.IsZero() {
		t.Fatalf("the fleet grew without a backlog of more than %d", submissionsPerReplica)
	}
	s.figure("backlog above one pod's share to the autoscaler's first step", "%.1f s", first.Sub(backlog).Seconds())
	s.figure(fmt.Sprintf("backlog above one pod's share to %d ready pods", maxReplicas), "%.1f s", time.Since(backlog).Seconds())
	s.await(t, "the backlog is worked off", 5*time.Minute, func(ctx context.Context) error {
		waiting, err := s.waiting(ctx)
		if err == nil && waiting > submissionsPerReplica/2 {
			return fmt.Errorf("%d submissions wait", waiting)
		}
		return err
	})
	s.quiet = time.Now()
	s.log(t, "the backlog is worked off")
}

// pace is how fast the autoscaler's definition lets it scale down. The tolerance of ten
// seconds is for timestamps in whole seconds and from two clocks; a wrong pace differs by
// more.
func pace() shrinkPace {
	return shrinkPace{Stable: 5 * time.Minute, Interval: time.Minute, Slack: 10 * time.Second}
}

// scaleDown waits until the fleet is small again, under calm traffic, and checks the pace of
// each step down, including those before this scenario.
func (s *suite) scaleDown(t *testing.T) {
	s.startTraffic(t, calmRate)
	s.await(t, "the fleet has one pod", 20*time.Minute, func(ctx context.Context) error {
		d, err := s.fleet.deployment(ctx)
		if err == nil && (*d.Spec.Replicas != 1 || d.Status.Replicas != 1 || d.Status.ReadyReplicas != 1) {
			return fmt.Errorf("%d wanted, %d running, %d ready", *d.Spec.Replicas, d.Status.Replicas, d.Status.ReadyReplicas)
		}
		return err
	})
	s.fleet.awaitCondition(t, v1alpha1.ConditionAutoscalingActive, metav1.ConditionTrue, "")
	var sizes []fleetSize
	s.await(t, "every change of the fleet's size was observed", time.Minute, func(context.Context) error {
		sizes = s.sizes.sizes()
		if len(sizes) == 0 || sizes[len(sizes)-1].Pods != 1 {
			return errors.New("the change to 1 pod was not observed")
		}
		return nil
	})
	for i := 1; i < len(sizes); i++ {
		s.log(t, "%s: %d to %d pods, %.0f s after the previous change", sizes[i].At.UTC().Format(time.TimeOnly), sizes[i-1].Pods, sizes[i].Pods, sizes[i].At.Sub(sizes[i-1].At).Seconds())
	}
	steps, err := checkShrinking(sizes, pace())
	ok(t, err)
	if len(steps) == 0 {
		s.log(t, "the fleet never had more than one pod: its pace was not tested")
	} else if !s.quiet.IsZero() {
		s.figure("backlog worked off to the autoscaler's last step, to 1 pod", "%.0f s", steps[len(steps)-1].At.Sub(s.quiet).Seconds())
	}
	s.log(t, "%d steps of one pod, none too early; clients meanwhile: %s", len(steps), s.traffic)
}
