package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// diary is a fake of the client and the recorder that a deletion uses. It records their
// calls in order.
type diary struct {
	client.Client
	lines []string
	// patched is the error returned for the patch that removes the finalizer.
	patched error
}

func (d *diary) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	d.lines = append(d.lines, "event "+reason)
}

func (d *diary) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	d.lines = append(d.lines, fmt.Sprintf("patch to %d finalizers", len(object.GetFinalizers())))
	return d.patched
}

// applier applies nothing.
type applier struct{ Applier }

func (applier) Forget(types.NamespacedName) {}

// While the finalizer is there, the operator retries an unfinished deletion. So the funded
// keys are named before the finalizer is removed. Otherwise, if the operator died in
// between or the answer to the patch was lost, no event would name their lamports.
func TestFundedKeysAreNamedBeforeTheRelayPoolIsLetGo(t *testing.T) {
	t.Parallel()
	funded := int64(20_000_000)
	wantCalls := []string{"event FundedKeyLeft", "event FundedKeyLeft", "patch to 0 finalizers"}
	tests := map[string]struct {
		patched error
		want    []string
	}{
		"the finalizer is removed":                                        {nil, wantCalls},
		"the removal fails, and is tried again with the keys named again": {errors.New("connection refused"), append(slices.Clone(wantCalls), wantCalls...)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &diary{patched: tc.patched}
			r := &Reconciler{Options: Options{
				Client: d, Recorder: d, Watcher: noChain{}, Backlogs: noBacklog{}, References: given{}, KeyObserver: given{}, Applier: applier{}, Now: now,
			}}
			deleted := metav1.NewTime(now())
			pool := &v1alpha1.RelayPool{
				ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "pools", Finalizers: []string{Finalizer}, DeletionTimestamp: &deleted},
				Status: v1alpha1.RelayPoolStatus{FeePayers: []v1alpha1.FeePayerStatus{
					{Address: payerA().String(), SecretName: "demo-payer-0-0", State: v1alpha1.PayerActive, BalanceLamports: &funded},
					{Address: payerB().String(), SecretName: "demo-payer-0-1", State: v1alpha1.PayerActive, BalanceLamports: &funded},
				}},
			}
			err := r.finalize(t.Context(), pool.DeepCopy())
			if tc.patched != nil {
				if !errors.Is(err, tc.patched) {
					t.Errorf("error is %v, want the patch's", err)
				}
				err = r.finalize(t.Context(), pool.DeepCopy())
			}
			if !errors.Is(err, tc.patched) {
				t.Errorf("error is %v, want %v", err, tc.patched)
			}
			if diff := cmp.Diff(tc.want, d.lines); diff != "" {
				t.Errorf("what was done, in its order (-want +got):\n%s", diff)
			}
		})
	}
}
