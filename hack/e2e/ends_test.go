package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaseLost is the last message of an operator that could not renew its Lease. The operator
// has to end then, and this happens to any operator when the cluster's API server stalls
// for ten seconds.
const leaseLost = "leader election lost"

// ends checks that no relay and no operator has ended without an accepted reason since the
// installation: every container that this suite did not kill was asked to end, and ended
// by itself, with 0, within its pod's grace period.
func (s *suite) ends(t *testing.T) {
	for _, in := range []string{namespace, operatorNamespace} {
		s.await(t, "no pod of "+in+" is ending", 3*time.Minute, func(ctx context.Context) error {
			list := &corev1.PodList{}
			err := s.kube.List(ctx, list, client.InNamespace(in))
			for i := range list.Items {
				if list.Items[i].DeletionTimestamp != nil {
					return fmt.Errorf("%s is ending", list.Items[i].Name)
				}
			}
			return err
		})
	}
	for container, w := range map[string]*podWatch{relayContainer: s.fleets, operatorContainer: s.operators} {
		victims := make(map[string]bool)
		for id, name := range s.victims {
			if name == container {
				victims[id] = true
			}
		}
		ends := slices.DeleteFunc(w.ends(container), func(end containerEnd) bool {
			refused, err := endsWith(w.logPath(end.Pod, container, end.ID), "is not permitted to log in")
			ok(t, err)
			return end.Pod == s.lockedOut && end.Code == 1 && refused
		})
		for i := range ends {
			if container == operatorContainer && ends[i].Code != 0 {
				var err error
				ends[i].LostLease, err = endsWith(w.logPath(ends[i].Pod, container, ends[i].ID), leaseLost)
				ok(t, err)
			}
		}
		tally, err := explainEnds(ends, victims)
		if err != nil {
			t.Error(err)
		}
		s.log(t, "container %s: %d ended on request, the slowest after %.0f s; %d were killed by this suite; %d ended as Jobs do; %d ended because they could not renew the Lease",
			container, tally.Stopped, tally.Slowest.Seconds(), tally.Killed, tally.Finished, tally.LostLease)
	}
}

// endsWith looks for words in the last lines of a file; a missing file has none.
func endsWith(path, words string) (found bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return bytes.Contains(text[max(0, len(text)-4096):], []byte(words)), err
}
