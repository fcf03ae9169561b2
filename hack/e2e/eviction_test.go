package e2e

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// eviction evicts a pod as kubectl drain does.
func (s *suite) eviction(t *testing.T) {
	s.startTraffic(t, calmRate)
	pods := s.fleet.awaitPods(t, "serves", nil)
	checkService := s.startService(t, boundsWhenOneEnds(len(pods), failedShare))
	evicted := containerID(t, &pods[0], relayContainer)
	ok(t, s.evict(&pods[0]))
	began := time.Now()
	if len(pods) > 1 {
		ok(t, denied("a second eviction while the first pod is missing", s.evict(&pods[1]), apierrors.IsTooManyRequests))
		s.log(t, "evicted %s; a second eviction was refused by the disruption budget", pods[0].Name)
	} else {
		s.log(t, "evicted %s; the fleet had one pod, so no second eviction was tried", pods[0].Name)
	}
	s.fleet.awaitPods(t, "but the evicted one serves", func(pod *corev1.Pod) error {
		if pod.UID == pods[0].UID {
			return errors.New("is still there")
		}
		return nil
	})
	s.log(t, "the evicted pod was replaced in %.1f s", time.Since(began).Seconds())
	end := s.endOf(t, s.fleets, relayContainer, evicted)
	if end.Code != 0 {
		t.Fatalf("the evicted pod's relay ended with %d (%s), expected 0: it has to hand over its work and end in time", end.Code, end.Reason)
	}
	s.log(t, "the evicted relay ended with 0 after %.0f s", end.At.Sub(end.StopRequested).Seconds())
	checkService()
}
