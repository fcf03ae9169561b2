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

// callRecorder is a fake of the client and the recorder that a deletion uses. It records their
// calls in order.
type callRecorder struct {
	client.Client
	calls []string
	// patchErr is returned by the patch that removes the finalizer.
	patchErr error
}

func (d *callRecorder) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	d.calls = append(d.calls, "event "+reason)
}

func (d *callRecorder) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	d.calls = append(d.calls, fmt.Sprintf("patch to %d finalizers", len(object.GetFinalizers())))
	return d.patchErr
}

// nopApplier does nothing.
type nopApplier struct{ Applier }

func (nopApplier) Forget(types.NamespacedName) {}

// While the finalizer is there, the operator retries an unfinished deletion. So events name the
// funded keys before the finalizer is removed. Otherwise, if the operator died in
// between or the answer to the patch was lost, no event would name their lamports.
func TestFundedKeysAreReportedBeforeTheFinalizerIsRemoved(t *testing.T) {
	t.Parallel()
	funded := int64(20_000_000)
	wantCalls := []string{"event FundedKeyLeft", "event FundedKeyLeft", "patch to 0 finalizers"}
	tests := map[string]struct {
		patchErr error
		want     []string
	}{
		"the finalizer is removed":                                {nil, wantCalls},
		"the removal fails, and the retry reports the keys again": {errors.New("connection refused"), append(slices.Clone(wantCalls), wantCalls...)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &callRecorder{patchErr: tc.patchErr}
			r := &Reconciler{Options: Options{
				Client: d, Recorder: d, Watcher: noChain{}, Backlogs: noBacklog{}, References: fixedReadings{}, KeyObserver: fixedReadings{}, Applier: nopApplier{}, Now: now,
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
			if tc.patchErr != nil {
				if !errors.Is(err, tc.patchErr) {
					t.Errorf("error is %v, want the patch's error", err)
				}
				err = r.finalize(t.Context(), pool.DeepCopy())
			}
			if !errors.Is(err, tc.patchErr) {
				t.Errorf("error is %v, want %v", err, tc.patchErr)
			}
			if diff := cmp.Diff(tc.want, d.calls); diff != "" {
				t.Errorf("calls, in order (-want +got):\n%s", diff)
			}
		})
	}
}
