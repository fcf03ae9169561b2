package apply_test

import (
	"testing"
	"time"

	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

func TestThereIsNeverMoreThanOneAutoscaler(t *testing.T) {
	t.Parallel()
	server := apiservertest.Start(t, apiserver.Options{})
	config, err := server.Config()
	must(t, err)
	must(t, server.Install(definition(build.KindScaledObject, "scaledobjects")))
	w := newWorldOn(t, config, apiservertest.NamespaceOn(t, config))
	byHPA := []build.Object{deployment(shape{image: "relay:1"}), horizontalPodAutoscaler()}
	byKEDA := []build.Object{deployment(shape{image: "relay:1"}), scaledObject()}
	w.apply(byHPA)
	w.applyUntilUnchanged(byHPA)
	// Switch to KEDA and back. KEDA's finalizer delays the deletion of its object.
	made := false
	eventually(t, func() error {
		result, err := w.applier.Apply(t.Context(), w.owner, byKEDA)
		if err != nil {
			return err
		}
		if made = made || names(result.Applied) == "ScaledObject demo"; !made {
			return errorf("%+v", result)
		}
		return nil
	})
	u := w.get(byKEDA[1])
	u.SetFinalizers([]string{"finalizer.keda.sh"})
	must(t, w.live.Update(t.Context(), u))
	result := w.apply(byHPA)
	if names(result.Pruned) != "ScaledObject demo" || names(result.Waiting) != "HorizontalPodAutoscaler demo" || result.RetryAfter > 10*time.Second {
		t.Errorf("%+v, want the ScaledObject pruned and the HorizontalPodAutoscaler waiting for it", result)
	}
	if result := w.apply(byHPA); names(result.Waiting) != "HorizontalPodAutoscaler demo" {
		t.Errorf("%+v, want the HorizontalPodAutoscaler waiting", result)
	}
	u = w.get(byKEDA[1])
	u.SetFinalizers(nil)
	must(t, w.live.Update(t.Context(), u))
	w.clock.advance(10 * time.Second)
	if result := w.apply(byHPA); names(result.Applied) != "HorizontalPodAutoscaler demo" {
		t.Errorf("%+v, want the HorizontalPodAutoscaler applied", result)
	}
}
