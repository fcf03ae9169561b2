package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kill ends a pod's container with SIGKILL, from a privileged pod on its node, and returns
// its end.
func (s *suite) kill(t *testing.T, victim *corev1.Pod, container string, w *podWatch) containerEnd {
	t.Helper()
	id := containerID(t, victim, container)
	if err := s.makeNamespace(nodeNamespace, "privileged"); !apierrors.IsAlreadyExists(err) {
		ok(t, err)
	}
	s.victims[id] = container
	output, err := s.runToEnd(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "kill-" + victim.Name, Namespace: nodeNamespace},
		Spec: corev1.PodSpec{
			NodeName: victim.Spec.NodeName, HostPID: true, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "kill", Image: s.images.gate, ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"kill", id},
				SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(0)), RunAsNonRoot: new(false)},
			}},
		},
	})
	ok(t, err)
	s.log(t, "%s: %s", victim.Name, output)
	end := s.endOf(t, w, container, id)
	if end.Code != 137 {
		t.Fatalf("the killed container %s of pod %s ended with %d, expected 137, which is SIGKILL", container, victim.Name, end.Code)
	}
	return end
}

// killPod kills a relay, as a kernel without free memory does.
func (s *suite) killPod(t *testing.T) {
	s.startTraffic(t, calmRate)
	pods := s.fleet.awaitPods(t, "serves", nil)
	victim := s.busiest(t, pods)
	checkService := s.startService(t, boundsWhenOneEnds(len(pods), failedShareKilled))
	leases := s.watchLeases(fleetName)
	defer leases.close()
	leases.restart(t, len(pods))
	end := s.kill(t, victim, relayContainer, s.fleets)
	current := &corev1.Pod{}
	s.await(t, "the killed relay serves again", 4*time.Minute, func(ctx context.Context) error {
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(victim), current); err != nil {
			return err
		}
		if n := restarts(current) - restarts(victim); n != 1 {
			return fmt.Errorf("it was restarted %d times, expected once", n)
		}
		if !isReady(current) {
			return errors.New("it is not ready")
		}
		return nil
	})
	ready := podCondition(current, corev1.PodReady).LastTransitionTime // in whole seconds
	s.log(t, "it serves again")
	s.figure("end of a killed relay to its readiness", "%.0f s", ready.Sub(end.At).Seconds())
	leases.awaitTakeover(t)
	checkService()
}

// restarts returns how often a pod's relay was restarted.
func restarts(pod *corev1.Pod) int32 { return containerStatus(pod, relayContainer).RestartCount }

// killOperator kills the leading operator.
func (s *suite) killOperator(t *testing.T) {
	s.startTraffic(t, calmRate)
	checkService := s.startService(t, serviceBounds{MaxSilence: maxSilence, MaxFailed: failedShare})
	leader := s.leader(t)
	before, most, _ := s.fleetPods(t)
	s.log(t, "%s leads", leader.pod.Name)
	end := s.kill(t, leader.pod, operatorContainer, s.operators)
	next := s.leader(t, leader.identity)
	s.log(t, "%s leads", next.pod.Name)
	// Use the cluster's clocks: meanwhile the suite also read and deleted the killing pod.
	s.figure("kill of the leading operator to the next leader", "%.0f s", next.since.Sub(end.At).Seconds())
	s.awaitReady(t, operatorNamespace, operatorLabels(), operatorReplicas)
	s.awaitRepair(t)
	after, _, least := s.fleetPods(t)
	ok(t, undisturbed(before, after, most-least))
	s.log(t, "the fleet's %d pods are the same as before, and none was restarted", len(after))
	checkService()
}

// fleetPods returns the fleet's pods, and the largest and smallest size that the autoscaler
// wanted while they were listed.
func (s *suite) fleetPods(t *testing.T) (list []fleetPod, most, least int) {
	t.Helper()
	first, err := s.fleet.deployment(s.ctx)
	ok(t, err)
	pods, err := s.fleet.pods(s.ctx)
	ok(t, err)
	last, err := s.fleet.deployment(s.ctx)
	ok(t, err)
	for i := range pods {
		list = append(list, fleetPod{Name: pods[i].Name, UID: string(pods[i].UID), Restarts: restarts(&pods[i])})
	}
	return list, int(max(*first.Spec.Replicas, *last.Spec.Replicas)), int(min(*first.Spec.Replicas, *last.Spec.Replicas))
}

// awaitRepair changes the fleet's Service by hand and waits until the operator undoes the
// change.
func (s *suite) awaitRepair(t *testing.T) {
	t.Helper()
	const label = "app.kubernetes.io/managed-by"
	service := &corev1.Service{}
	ok(t, s.kube.Get(s.ctx, s.fleet.key(), service))
	ok(t, s.kube.Patch(s.ctx, service, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+label+`":"somebody"}}}`))))
	s.await(t, "the operator repairs the Service", 2*time.Minute, func(ctx context.Context) error {
		if err := s.kube.Get(ctx, s.fleet.key(), service); err != nil {
			return err
		}
		if service.Labels[label] == "somebody" {
			return errors.New("the change is still there")
		}
		return nil
	})
	s.log(t, "the operator undid a manual change")
}
