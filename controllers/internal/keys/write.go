package keys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// WriterOptions are the options of a Writer.
type WriterOptions struct {
	// Client creates and applies Secrets, and creates and deletes Jobs. It never
	// reads. Required.
	Client client.Client
	// Random makes private keys: crypto/rand.Reader, except in tests. Required.
	Random io.Reader
	// Log receives the changes, with addresses and names only. Required.
	Log *slog.Logger
	// Observer reads again after each write of keys or labels. Required.
	Observer *Observer
}

// Writer executes plans. It is safe for concurrent use on different RelayPools.
type Writer struct{ WriterOptions }

// NewWriter makes a Writer. It returns an error if an option is missing.
func NewWriter(o WriterOptions) (*Writer, error) {
	if o.Client == nil || o.Random == nil || o.Log == nil || o.Observer == nil {
		return nil, errors.New("make writer of keys: Client, Random, Log and Observer are required")
	}
	return &Writer{o}, nil
}

// Apply carries out the plan: keys first, then labels, then deletions of Jobs, then the Job. It
// stops at the first error, because a later write may depend on an earlier one. Completed
// writes stay, and the next pass continues after them. job is the object for plan.Job; nil if
// plan.Job is nil.
func (w *Writer) Apply(ctx context.Context, pool *v1alpha1.RelayPool, plan Plan, job runtime.ApplyConfiguration) error {
	if plan.Writes() {
		// Also after an error: the failed write may have been executed.
		defer w.Observer.Invalidate(client.ObjectKeyFromObject(pool))
	}
	for _, k := range plan.Create {
		if err := w.create(ctx, pool, k); err != nil {
			return err
		}
	}
	for _, l := range plan.Label {
		if err := w.label(ctx, pool, l); err != nil {
			return err
		}
	}
	for _, j := range plan.DeleteJobs {
		if err := w.deleteJob(ctx, pool, j); err != nil {
			return err
		}
	}
	if plan.Job != nil {
		return w.makeJob(ctx, pool, plan.Job, job)
	}
	return nil
}

// label writes the labels and the annotation of one key. The write never makes a Secret.
// With the uid and the resource version, it fails if the Secret was replaced, deleted or
// changed since it was read.
func (w *Writer) label(ctx context.Context, pool *v1alpha1.RelayPool, l LabelChange) error {
	if l.Key.UID == "" || l.Key.ResourceVersion == "" {
		return fmt.Errorf("label Secret %s: its uid and resource version are not known", l.Key.Secret)
	}
	wanted := labels(pool.Name, NewKey{Revision: l.Key.Revision, Index: l.Key.Index, State: l.State})
	config := corev1ac.Secret(l.Key.Secret, pool.Namespace).
		WithUID(l.Key.UID).WithResourceVersion(l.Key.ResourceVersion).
		WithLabels(wanted).WithAnnotations(map[string]string{AnnotationAddress: l.Key.Address})
	if err := w.Client.Apply(ctx, config, client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("label Secret %s %s: %w", l.Key.Secret, labelOf(l.State), withoutValues(err))
	}
	w.Log.InfoContext(ctx, "fee payer key secret labelled", "namespace", pool.Namespace, "secret", l.Key.Secret,
		"address", l.Key.Address, "state", labelOf(l.State))
	return nil
}

// makeJob makes the Job of a step. If the Job runs with another spec, makeJob deletes it,
// and the next pass makes it again. Stopping the Job at any point does no harm.
func (w *Writer) makeJob(ctx context.Context, pool *v1alpha1.RelayPool, want *JobWanted, config runtime.ApplyConfiguration) error {
	object, err := jobObject(pool, want, config)
	if err != nil {
		return fmt.Errorf("make Job %s: %w", want.Name, err)
	}
	if existing := want.Existing; existing != nil {
		if existing.SpecHash == object.Annotations[annotationSpec] {
			return nil
		}
		return w.deleteJob(ctx, pool, *existing)
	}
	err = w.Client.Create(ctx, object, client.FieldOwner(FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		return nil // the next pass checks its owner
	}
	if err != nil {
		return fmt.Errorf("create Job %s: %w", want.Name, err)
	}
	w.Log.InfoContext(ctx, "key rotation job created", "namespace", pool.Namespace, "job", want.Name, "step", string(want.Step))
	return nil
}

func (w *Writer) deleteJob(ctx context.Context, pool *v1alpha1.RelayPool, j Job) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: j.Name}}
	err := w.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &j.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // deleted or replaced meanwhile
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete Job %s: %w", j.Name, err)
	}
	w.Log.InfoContext(ctx, "key rotation job deleted", "namespace", pool.Namespace, "job", j.Name)
	return nil
}

// withoutValues reduces an API server's error about a Secret to the error's reason. The message
// of a refusal by validation or an admission webhook may contain the Secret's values.
func withoutValues(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err // a connection error
	}
	return &reasonError{err}
}

// reasonError is an API error of which only the reason is shown. errors.As still finds the
// error, so that apierrors.IsConflict and similar functions work.
type reasonError struct{ err error }

// Error returns the reason.
func (r *reasonError) Error() string {
	return fmt.Sprintf("the API server answered %s", apierrors.ReasonForError(r.err))
}

// Unwrap returns the API server's error.
func (r *reasonError) Unwrap() error { return r.err }
