package keys

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// TestJobIsDeletedByUID: a Job is deleted by its uid, because another Job may have
// its name by now, and may have started to move lamports.
func TestJobIsDeletedByUID(t *testing.T) {
	t.Parallel()
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	refused := apierrors.NewForbidden(jobs, "demo-payer-2-fund", errors.New("not allowed"))
	tests := map[string]struct{ answer, want error }{
		"the Job exists":                    {nil, nil},
		"the Job does not exist":            {apierrors.NewNotFound(jobs, "demo-payer-2-fund"), nil},
		"another Job has its name":          {apierrors.NewConflict(jobs, "demo-payer-2-fund", errors.New("uid")), nil},
		"the operator lacks the permission": {refused, refused},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got client.DeleteOptions
			w := &Writer{WriterOptions{Log: slog.New(slog.DiscardHandler), Client: interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
					got.ApplyOptions(options)
					return test.answer
				},
			})}}
			pool := &v1alpha1.RelayPool{ObjectMeta: metav1.ObjectMeta{Namespace: "relays", Name: "demo"}}
			if err := w.deleteJob(t.Context(), pool, Job{Name: "demo-payer-2-fund", UID: "first"}); !errors.Is(err, test.want) {
				t.Errorf("error is %v, want %v", err, test.want)
			}
			want := client.DeleteOptions{
				Preconditions:     &metav1.Preconditions{UID: ptr.To[types.UID]("first")},
				PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("options of the deletion (-want +got):\n%s", diff)
			}
		})
	}
}
