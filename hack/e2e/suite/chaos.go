package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	if after.Accepted == before.Accepted {
		return errors.New("nothing was accepted during the upgrade: expected the fleet to serve throughout")
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
		if err := s.Cluster.Evict(ctx, &pods[1]); !apierrors.IsTooManyRequests(err) {
			return fmt.Errorf("a second eviction was not refused by the disruption budget: %w", err)
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
	r.Sum("replaced in %.1f s; the evicted relay ended with 0 after %.0f s; %s", replaced.Seconds(), exit.At.Sub(exit.Asked).Seconds(), second)
	return nil
}

// kill ends a pod's container with SIGKILL, from a pod of its node that may, and
// gives its end.
func (s *suite) kill(ctx context.Context, r *report.Scenario, victim *corev1.Pod, container string, w *cluster.Watcher) (exit cluster.Exit, err error) {
	id, err := cluster.ContainerID(victim, container)
	if err != nil {
		return exit, err
	}
	if err := s.Cluster.MakeNamespace(ctx, nodeNamespace, "privileged"); err != nil && !apierrors.IsAlreadyExists(err) {
		return exit, err
	}
	s.victims[id] = container
	root, no := int64(0), false
	said, err := s.Cluster.RunToEnd(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "kill-" + victim.Name, Namespace: nodeNamespace},
		Spec: corev1.PodSpec{
			NodeName: victim.Spec.NodeName, HostPID: true, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "kill", Image: s.Images.Gate, ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"kill", id},
				SecurityContext: &corev1.SecurityContext{RunAsUser: &root, RunAsNonRoot: &no},
			}},
		},
	})
	if err != nil {
		return exit, err
	}
	r.Saw("%s: %s", victim.Name, strings.TrimSpace(said))
	if exit, err = exitOf(ctx, w, id); err != nil {
		return exit, err
	}
	if exit.Code != 137 {
		return exit, fmt.Errorf("the killed container %s of pod %s ended with %d, expected 137, which is SIGKILL", container, victim.Name, exit.Code)
	}
	return exit, nil
}

// killPod ends a relay as a kernel does that is out of memory.
func (s *suite) killPod(ctx context.Context, r *report.Scenario) error {
	if err := s.startTraffic(ctx, calmRate); err != nil {
		return err
	}
	pods, err := s.fleet.settled(ctx, "serves", anyPod)
	if err != nil {
		return err
	}
	victim, err := s.busiest(ctx, pods)
	if err != nil {
		return err
	}
	leases := s.observe(ctx)
	defer leases.close()
	if err := leases.restart(ctx, len(pods)); err != nil {
		return err
	}
	exit, err := s.kill(ctx, r, victim, relayContainer, s.fleets)
	if err != nil {
		return err
	}
	var ready time.Time
	if err := cluster.Await(ctx, "the killed relay serves again", cluster.Minutes(4), func(ctx context.Context) (string, error) {
		now := &corev1.Pod{}
		if err := s.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(victim), now); err != nil {
			return "", err
		}
		if n := restarts(now, relayContainer) - restarts(victim, relayContainer); n != 1 {
			return fmt.Sprintf("it was restarted %d times, expected once", n), nil
		}
		if !cluster.Ready(now) {
			return "it is not ready", nil
		}
		ready = readySince(now)
		return "", nil
	}); err != nil {
		return err
	}
	took := ready.Sub(exit.At)
	r.Saw("it serves again")
	if err := s.takenOver(ctx, r, leases, len(pods)); err != nil {
		return err
	}
	s.Report.Figure("a killed relay's end to its being ready again", "%.0f s", took.Seconds())
	r.Sum("SIGKILL to ready again in %.0f s", took.Seconds())
	return nil
}

// readySince is when a ready pod became so, to the second.
func readySince(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

func restarts(pod *corev1.Pod, container string) int32 {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container {
			return status.RestartCount
		}
	}
	return 0
}

// killOperator ends the operator that leads.
func (s *suite) killOperator(ctx context.Context, r *report.Scenario) error {
	leader, err := s.leader(ctx)
	if err != nil {
		return err
	}
	before, err := s.deployed(ctx)
	if err != nil {
		return err
	}
	r.Saw("%s leads", leader.pod.Name)
	exit, err := s.kill(ctx, r, leader.pod, operatorContainer, s.operators)
	if err != nil {
		return err
	}
	next, err := s.leader(ctx, leader.identity)
	if err != nil {
		return err
	}
	// By the cluster's clocks: ours goes on while the pod is read and deleted that killed.
	took := next.since.Sub(exit.At)
	r.Saw("%s leads", next.pod.Name)
	if _, err := s.Cluster.AwaitReady(ctx, OperatorNamespace, operatorLabels(), operatorReplicas); err != nil {
		return err
	}
	// It acts: what somebody changes by hand is put back.
	if err := s.meddle(ctx, r); err != nil {
		return err
	}
	after, err := s.deployed(ctx)
	if err != nil {
		return err
	}
	if err := judge.Undisturbed(before.pods, after.pods, before.most-after.least); err != nil {
		return fmt.Errorf("the fleet has to go on while its operator is away: %w", err)
	}
	r.Saw("the fleet's %d pods are the same as before, and none was started again", len(after.pods))
	s.Report.Figure("a leading operator killed to the next one leading", "%.0f s", took.Seconds())
	r.Sum("the next one led after %.0f s, and put back what was changed by hand; no relay was replaced or started again", took.Seconds())
	return nil
}

// deployment is what pods a fleet has, and the most and the least that the
// autoscaler wanted while they were listed.
type deployment struct {
	pods        []judge.Pod
	most, least int
}

func (s *suite) deployed(ctx context.Context) (d deployment, err error) {
	first, err := s.fleet.deployment(ctx)
	if err != nil {
		return d, err
	}
	pods, err := s.fleet.pods(ctx)
	if err != nil {
		return d, err
	}
	for i := range pods {
		d.pods = append(d.pods, judge.Pod{Name: pods[i].Name, UID: string(pods[i].UID), Restarts: restarts(&pods[i], relayContainer)})
	}
	last, err := s.fleet.deployment(ctx)
	if err != nil {
		return d, err
	}
	d.most, d.least = int(max(*first.Spec.Replicas, *last.Spec.Replicas)), int(min(*first.Spec.Replicas, *last.Spec.Replicas))
	return d, nil
}

// meddle changes the fleet's Service by hand and waits until that is undone.
func (s *suite) meddle(ctx context.Context, r *report.Scenario) error {
	service := &corev1.Service{}
	if err := s.Cluster.Client.Get(ctx, s.fleet.key(), service); err != nil {
		return fmt.Errorf("read the fleet's Service: %w", err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"somebody"}}}`))
	if err := s.Cluster.Client.Patch(ctx, service, patch); err != nil {
		return fmt.Errorf("change the fleet's Service: %w", err)
	}
	return cluster.Await(ctx, "the operator puts the Service back", cluster.Minutes(2), func(ctx context.Context) (string, error) {
		if err := s.Cluster.Client.Get(ctx, s.fleet.key(), service); err != nil {
			return "", err
		}
		if by := service.Labels["app.kubernetes.io/managed-by"]; by == "somebody" {
			return "it is as somebody left it", nil
		}
		r.Saw("what was changed by hand is put back")
		return "", nil
	})
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
	r.Sum("%d pods replaced in %.1f s, reading the Secret every %s included", len(pods), took.Seconds(), refsInterval)
	return nil
}
