package e2e

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const killedCode = 137

// containerEnd is the end of a container, as its node reported it.
type containerEnd struct {
	// Pod and Container are names. ID is the container's ID.
	Pod, Container, ID string
	// Code is the exit code. Reason is the kubelet's reason, such as OOMKilled.
	Code   int32
	Reason string
	// At is the time at which the container ended. StopRequested is the time of the stop
	// signal, or zero without such a signal. Grace is the pod's grace period.
	At, StopRequested time.Time
	Grace             time.Duration
	// Finite says that the pod is meant to end by itself, like a Job's.
	Finite bool
	// LostLease says that the container ended itself because it could not renew its leader
	// Lease, as it has to.
	LostLease bool
}

// endsOf lists the ends that a pod's status reports: the current and the previous
// container of each name.
func endsOf(pod *corev1.Pod) (ends []containerEnd) {
	for _, status := range pod.Status.ContainerStatuses {
		for _, ended := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
			if ended == nil || ended.ContainerID == "" {
				continue
			}
			_, id, _ := strings.Cut(ended.ContainerID, "://")
			end := containerEnd{
				Pod: pod.Name, Container: status.Name, ID: id, At: ended.FinishedAt.Time, Code: ended.ExitCode, Reason: ended.Reason,
				Finite: pod.Spec.RestartPolicy != corev1.RestartPolicyAlways,
			}
			if pod.DeletionTimestamp != nil && status.State.Terminated == ended {
				if pod.DeletionGracePeriodSeconds != nil {
					end.Grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
				}
				end.StopRequested = pod.DeletionTimestamp.Add(-end.Grace) // the timestamp is the end of the grace period
			}
			ends = append(ends, end)
		}
	}
	return ends
}

// endTally counts the ends that are explained.
type endTally struct {
	// Stopped counts ends after a stop signal, and Slowest is the longest time that one took.
	// Killed counts kills by the suite. Finished counts the expected ends of finite pods.
	Stopped, Killed, Finished, LostLease int
	Slowest                              time.Duration
}

// explainEnds explains each end, and returns an error that names those without an explanation.
// victims are the IDs of containers that the suite itself killed: the ends have to include
// each of them.
func explainEnds(ends []containerEnd, victims map[string]bool) (endTally, error) {
	var t endTally
	var errs []error
	seen := make(map[string]bool)
	for i := range ends {
		e := &ends[i]
		seen[e.ID] = true
		if err := t.explain(e, victims[e.ID]); err != nil {
			errs = append(errs, fmt.Errorf("container %s of pod %s ended with %d (%s) at %s: %w",
				e.Container, e.Pod, e.Code, e.Reason, e.At.UTC().Format(time.TimeOnly), err))
		}
	}
	for id := range victims {
		if !seen[id] {
			errs = append(errs, fmt.Errorf("container %s was killed by the suite, but its end was not observed", id))
		}
	}
	return t, errors.Join(errs...)
}

// explain counts an explained end. For an unexplained end it returns what was expected.
func (t *endTally) explain(e *containerEnd, victim bool) error {
	switch {
	case victim && e.Code == killedCode:
		t.Killed++
	case victim:
		return fmt.Errorf("the suite killed it: expected exit code %d", killedCode)
	case e.LostLease:
		t.LostLease++
	case e.Finite && e.Code == 0:
		t.Finished++
	case e.Finite:
		return errors.New("expected 0, because its pod is meant to end by itself")
	case e.StopRequested.IsZero():
		return errors.New("it got no stop signal, and the suite did not kill it")
	case e.Code != 0:
		return errors.New("it got a stop signal: expected 0")
	case e.At.Sub(e.StopRequested) > e.Grace:
		return fmt.Errorf("it took %s to end, expected %s at most", e.At.Sub(e.StopRequested), e.Grace)
	default:
		t.Stopped++
		t.Slowest = max(t.Slowest, e.At.Sub(e.StopRequested))
	}
	return nil
}
