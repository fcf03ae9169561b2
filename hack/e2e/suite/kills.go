package suite

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/judge"
	"github.com/relaypool/relaypool/hack/e2e/report"
)

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
	served, err := s.serving(ctx, r, bounds(len(pods), torn))
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
		if n := restarts(now) - restarts(victim); n != 1 {
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
	if err := served(); err != nil {
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

// restarts counts how often a pod's relay was started again.
func restarts(pod *corev1.Pod) int32 {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == relayContainer {
			return status.RestartCount
		}
	}
	return 0
}

// killOperator ends the operator that leads.
func (s *suite) killOperator(ctx context.Context, r *report.Scenario) error {
	if err := s.startTraffic(ctx, calmRate); err != nil {
		return err
	}
	served, err := s.serving(ctx, r, judge.Bounds{Away: mostAway, Share: orderly})
	if err != nil {
		return err
	}
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
	if err := served(); err != nil {
		return err
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
		d.pods = append(d.pods, judge.Pod{Name: pods[i].Name, UID: string(pods[i].UID), Restarts: restarts(&pods[i])})
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
