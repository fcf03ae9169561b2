package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// ended is a container's status after its end.
func ended(id string, code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ContainerID: id, ExitCode: code, Reason: "Error", FinishedAt: metav1.NewTime(noon),
	}}
}

func TestEndsAreTakenInOnceAndWithWhoAskedForThem(t *testing.T) {
	t.Parallel()
	grace, always := int64(60), corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}
	deleted := metav1.NewTime(noon.Add(50 * time.Second)) // when the grace is over: asked 10 s before noon
	drained := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "drained", DeletionTimestamp: &deleted, DeletionGracePeriodSeconds: &grace, UID: "7-8"}, Spec: always}
	drained.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "relay", RestartCount: 1, State: ended("c://1", 0), LastTerminationState: ended("c://0", 137)}}
	killed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "killed", UID: "9"}, Spec: always}
	killed.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "relay", RestartCount: 1, LastTerminationState: ended("c://2", 137)}}
	w := &Watcher{known: make(map[string]bool), exits: make(map[string]Exit)}
	job := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}}
	job.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "relay", State: ended("c://3", 0)}}
	for _, pod := range []*corev1.Pod{drained, killed, killed, job} {
		w.see(t.Context(), pod)
	}
	want := map[string]Exit{
		"c://0": {Pod: "drained", Container: "relay", ID: "0", At: noon, Code: 137, Reason: "Error", Log: "drained_7_relay_0.log"},
		"c://1": {
			Pod: "drained", Container: "relay", ID: "1", At: noon, Code: 0, Reason: "Error", Log: "drained_7_relay_1.log",
			Asked: noon.Add(-10 * time.Second), Grace: time.Minute,
		},
		"c://2": {Pod: "killed", Container: "relay", ID: "2", At: noon, Code: 137, Reason: "Error", Log: "killed_9_relay_0.log"},
		"c://3": {Pod: "job", Container: "relay", ID: "3", At: noon, Code: 0, Reason: "Error", Log: "job__relay_0.log", Finite: true},
	}
	if diff := cmp.Diff(want, w.exits); diff != "" || len(w.Exits()) != len(want) {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
}

func TestWhyAPodIsNotReadyIsSaidInItsOwnWords(t *testing.T) {
	t.Parallel()
	for want, status := range map[string]corev1.PodStatus{
		"ErrImagePull no such image": {ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"}},
		}}},
		"ended with 2":                         {ContainerStatuses: []corev1.ContainerStatus{{State: ended("c://1", 2)}}},
		"not scheduled: 0/1 nodes have memory": {Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes have memory"}}},
		"Running, not ready":                   {Phase: corev1.PodRunning},
	} {
		if got := why(&corev1.Pod{Status: status}); !strings.Contains(got, want) {
			t.Errorf("why %q, want %q in it", got, want)
		}
	}
}

func TestAContainerIsKnownByItsRuntimesID(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{Name: "gate", ContainerID: "containerd://abc"}, {Name: "relay", ContainerID: "containerd://def"}, {Name: "late"},
	}}}
	if id, err := ContainerID(pod, "relay"); err != nil || id != "def" {
		t.Errorf("id %q, error %v", id, err)
	}
	if _, err := ContainerID(pod, "late"); err == nil {
		t.Error("a container that has not started has no id")
	}
}
