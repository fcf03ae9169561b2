package e2e

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// upgrade rolls the fleet to the next release of the relay through the chart, and an earlier release to this one.
func (s *suite) upgrade(t *testing.T) {
	s.startTraffic(t, calmRate)
	checkService := s.startService(t, serviceBounds{MaxSilence: maxSilence, MaxFailed: failedShare})
	began := time.Now()
	s.chart = "charts/relaypool"
	s.values["operator"] = map[string]any{"image": chartImage(s.images.operator), "refsInterval": refsInterval}
	s.values["relay"] = map[string]any{"image": chartImage(s.images.nextRelay)}
	s.deploy(t, "upgrade")
	s.log(t, "helm upgrade has ended, and the operators have been replaced")
	pods := s.fleet.awaitPods(t, "runs "+s.images.nextRelay, func(pod *corev1.Pod) error {
		if i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Image == s.images.nextRelay }); i < 0 {
			return errors.New("runs another image")
		}
		return nil
	})
	s.log(t, "%d pods run the next image", len(pods))
	s.figure("helm upgrade to a fleet of the next image, under load", "%.1f s for %d pods", time.Since(began).Seconds(), len(pods))
	checkService()
}
