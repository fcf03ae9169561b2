package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// afterNoon returns the time some seconds after noon.
func afterNoon(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

func TestEveryEndHasToBeExplained(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end    containerEnd
		victim bool
		want   endTally
		// wantErr is a part of the error; empty for no error.
		wantErr string
	}{
		"got a stop signal, and ended in time":                     {end: containerEnd{StopRequested: noon, At: afterNoon(7)}, want: endTally{Stopped: 1, Slowest: 7 * time.Second}},
		"got a stop signal, and was killed later":                  {end: containerEnd{StopRequested: noon, At: afterNoon(60), Code: 137}, wantErr: "got a stop signal: expected 0"},
		"got a stop signal, and took longer than its grace period": {end: containerEnd{StopRequested: noon, At: afterNoon(61)}, wantErr: "took 1m1s"},
		"got a stop signal, and panicked":                          {end: containerEnd{StopRequested: noon, At: afterNoon(1), Code: 2}, wantErr: "got a stop signal: expected 0"},
		"killed by the suite":                                      {end: containerEnd{At: noon, Code: 137}, victim: true, want: endTally{Killed: 1}},
		"killed by the suite, but it ended itself":                 {end: containerEnd{At: noon, Code: 1}, victim: true, wantErr: "the suite killed it"},
		"killed by the kernel, which was out of memory": {
			end: containerEnd{At: noon, Code: 137, Reason: "OOMKilled"}, wantErr: "ended with 137 (OOMKilled) at 12:00:00: it got no stop signal",
		},
		"restarted by its liveness probe, and ended with 0": {end: containerEnd{At: noon}, wantErr: "got no stop signal"},
		"panicked":                        {end: containerEnd{At: noon, Code: 2}, wantErr: "got no stop signal"},
		"a Job's end":                     {end: containerEnd{At: noon, Finite: true}, want: endTally{Finished: 1}},
		"a Job that failed":               {end: containerEnd{At: noon, Finite: true, Code: 1}, wantErr: "its pod is meant to end by itself"},
		"an operator that lost the Lease": {end: containerEnd{At: noon, Code: 1, LostLease: true}, want: endTally{LostLease: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.end.Pod, tc.end.Container, tc.end.ID, tc.end.Grace = "demo-1", "relay", "a", time.Minute
			got, err := explainEnds([]containerEnd{tc.end}, map[string]bool{"a": tc.victim})
			wantError(t, err, tc.wantErr)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("tally (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKilledContainerWithoutObservedEndIsReported(t *testing.T) {
	t.Parallel()
	if _, err := explainEnds([]containerEnd{{ID: "a", StopRequested: noon, At: noon}}, map[string]bool{"b": true}); err == nil || !strings.Contains(err.Error(), "container b was killed by the suite") {
		t.Errorf("error %v, want one that names b", err)
	}
}

// terminated is a container's state after its end.
func terminated(id string, code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ContainerID: "c://" + id, ExitCode: code, Reason: "Error", FinishedAt: metav1.NewTime(noon),
	}}
}

func TestEndsOfReportsStopRequests(t *testing.T) {
	t.Parallel()
	grace, deleted := int64(60), metav1.NewTime(afterNoon(50)) // the end of the grace period, which began 10 s before noon
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want []containerEnd
	}{
		"deleted, after a restart": {
			pod: corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted, DeletionGracePeriodSeconds: &grace},
				Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways},
				Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: terminated("1", 0), LastTerminationState: terminated("0", 137)}}},
			},
			want: []containerEnd{{ID: "1", StopRequested: afterNoon(-10), Grace: time.Minute}, {ID: "0", Code: 137}},
		},
		"killed, and started again": {
			pod: corev1.Pod{
				Spec:   corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways},
				Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{LastTerminationState: terminated("2", 137)}}},
			},
			want: []containerEnd{{ID: "2", Code: 137}},
		},
		"a Job's pod": {
			pod: corev1.Pod{
				Spec:   corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever},
				Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: terminated("3", 0)}}},
			},
			want: []containerEnd{{ID: "3", Finite: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range tc.want {
				tc.want[i].At, tc.want[i].Reason = noon, "Error"
			}
			if diff := cmp.Diff(tc.want, endsOf(&tc.pod)); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
		})
	}
}
