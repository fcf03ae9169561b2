package suite

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/judge"
	"github.com/relaypool/relaypool/hack/e2e/report"
	"github.com/relaypool/relaypool/hack/e2e/stage"
)

// anyPod is content with every pod.
func anyPod(*corev1.Pod) string { return "" }

// imageOf is the relay's in a pod.
func imageOf(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == relayContainer {
			return pod.Spec.Containers[i].Image
		}
	}
	return ""
}

// upgrade brings the next release of the relay by the chart.
func (s *suite) upgrade(ctx context.Context, r *report.Scenario) error {
	if err := s.startTraffic(ctx, calmRate); err != nil {
		return err
	}
	served, err := s.serving(ctx, r, judge.Bounds{Away: mostAway, Share: orderly})
	if err != nil {
		return err
	}
	before := s.traffic.load.Journal().Progress()
	began := s.Now()
	s.values["relay"] = map[string]any{"image": imageValues(s.Images.NextRelay)}
	if _, err := s.Helm.Upgrade(ctx, s.values); err != nil {
		return err
	}
	r.Saw("helm upgrade has ended, and the operators have been replaced")
	pods, err := s.fleet.settled(ctx, "runs "+s.Images.NextRelay, func(pod *corev1.Pod) string {
		if image := imageOf(pod); image != s.Images.NextRelay {
			return "runs " + image
		}
		return ""
	})
	if err != nil {
		return err
	}
	took := s.Now().Sub(began)
	after := s.traffic.load.Journal().Progress()
	r.Saw("%d pods run the next image; meanwhile %d were accepted and %d completed", len(pods), after.Accepted-before.Accepted, after.Completed-before.Completed)
	if err := served(); err != nil {
		return err
	}
	s.Report.Figure("helm upgrade to a fleet of the next image, under load", "%.1f s for %d pods", took.Seconds(), len(pods))
	r.Sum("%d pods replaced in %.1f s; %d accepted and %d completed meanwhile", len(pods), took.Seconds(), after.Accepted-before.Accepted, after.Completed-before.Completed)
	return nil
}

// eviction drains as an administrator's kubectl drain does.
func (s *suite) eviction(ctx context.Context, r *report.Scenario) error {
	if err := s.startTraffic(ctx, calmRate); err != nil {
		return err
	}
	pods, err := s.fleet.settled(ctx, "serves", anyPod)
	if err != nil {
		return err
	}
	served, err := s.serving(ctx, r, bounds(len(pods), orderly))
	if err != nil {
		return err
	}
	evicted, err := cluster.ContainerID(&pods[0], relayContainer)
	if err != nil {
		return err
	}
	if err := s.Cluster.Evict(ctx, &pods[0]); err != nil {
		return fmt.Errorf("evict pod %s: %w", pods[0].Name, err)
	}
	began := s.Now()
	second := "the fleet had one pod, so that no second one was asked for"
	if len(pods) > 1 {
		if err := denied("a second eviction while the first pod is away", s.Cluster.Evict(ctx, &pods[1]), apierrors.IsTooManyRequests); err != nil {
			return err
		}
		second = "a second eviction was refused by the disruption budget"
	}
	r.Saw("evicted %s; %s", pods[0].Name, second)
	if _, err := s.fleet.settled(ctx, "but the evicted one serves", func(pod *corev1.Pod) string {
		if pod.UID == pods[0].UID {
			return "is still there"
		}
		return ""
	}); err != nil {
		return err
	}
	replaced := s.Now().Sub(began)
	r.Saw("the fleet is whole again")
	exit, err := exitOf(ctx, s.fleets, evicted)
	if err != nil {
		return err
	}
	if exit.Code != 0 {
		return fmt.Errorf("the evicted pod's relay ended with %d (%s), expected 0: it has to hand over and end in time", exit.Code, exit.Reason)
	}
	if err := served(); err != nil {
		return err
	}
	r.Sum("replaced in %.1f s; the evicted relay ended with 0 after %.0f s; %s", replaced.Seconds(), exit.At.Sub(exit.Asked).Seconds(), second)
	return nil
}

// denied holds that something was refused, for the reason that is expected.
func denied(what string, err error, expected func(error) bool) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s was let through, expected a refusal", what)
	case !expected(err):
		return fmt.Errorf("%s failed, and was not refused as expected: %w", what, err)
	}
	return nil
}

const connectedSQL = `SELECT count(DISTINCT client_addr) FROM pg_stat_activity WHERE datname = current_database() AND usename = $1`

// secret changes the database's user in its Secret.
func (s *suite) secret(ctx context.Context, r *report.Scenario) error {
	if err := s.startTraffic(ctx, calmRate); err != nil {
		return err
	}
	before, err := s.fleet.settled(ctx, "serves", anyPod)
	if err != nil {
		return err
	}
	served, err := s.serving(ctx, r, judge.Bounds{Away: mostAway, Share: orderly})
	if err != nil {
		return err
	}
	const user = "successor"
	url, err := s.stage.AnotherUser(ctx, fleetName, user)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: fleetName + "-database"}
	if err := s.Cluster.Client.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("read the database's Secret: %w", err)
	}
	secret.StringData = map[string]string{stage.URLKey: url}
	if err := s.Cluster.Client.Update(ctx, secret); err != nil {
		return fmt.Errorf("change the database's Secret: %w", err)
	}
	began := s.Now()
	r.Saw("the Secret of the database names another user")
	pods, err := s.fleet.settled(ctx, "was made after the change", func(pod *corev1.Pod) string {
		if slices.ContainsFunc(before, func(old corev1.Pod) bool { return old.UID == pod.UID }) {
			return "is an old one"
		}
		return ""
	})
	if err != nil {
		return err
	}
	took := s.Now().Sub(began)
	var clients int
	if err := s.stage.WithDatabase(ctx, fleetName, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, connectedSQL, user).Scan(&clients)
	}); err != nil {
		return fmt.Errorf("look who is connected: %w", err)
	}
	if clients < len(pods) {
		return fmt.Errorf("%d pods are connected as the new user, expected %d", clients, len(pods))
	}
	if err := served(); err != nil {
		return err
	}
	r.Sum("%d pods replaced in %.1f s, reading the Secret every %s included", len(pods), took.Seconds(), refsInterval)
	return nil
}
