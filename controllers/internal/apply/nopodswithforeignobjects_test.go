package apply_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

// A service account with permissions may have the name of a RelayPool. Its pods must not
// run as that account.
func TestPodsNeverUseAForeignServiceAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	foreign := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.owner.Namespace, Name: poolName}}
	must(t, w.live.Create(t.Context(), foreign))
	objects := fixedObjects(shape{replicas: ptr(int32(2)), image: "relay:1"})
	result := w.apply(objects)
	if diff := cmp.Diff([]apply.Ref{{Kind: build.KindServiceAccount, Name: poolName}}, result.Foreign); diff != "" {
		t.Errorf("foreign (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]apply.Ref{{Kind: build.KindDeployment, Name: poolName}}, result.Withheld); diff != "" {
		t.Errorf("withheld (-want +got):\n%s", diff)
	}
	var d appsv1.Deployment
	if err := w.live.Get(t.Context(), client.ObjectKey{Namespace: w.owner.Namespace, Name: poolName}, &d); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment exists, or another error: %v", err)
	}
}
