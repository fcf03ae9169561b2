package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// These are the annotations of a rotation Job.
const (
	annotationInputs = "relaypool.dev/rotation-inputs"
	annotationToken  = "relaypool.dev/rotation-request" //nolint:gosec // the value of a RelayPool's annotation, no credential
	annotationSpec   = "relaypool.dev/rotation-spec"
)

// JobOf returns what a decision needs to know about a Job. message is the last line of the
// newest termination message of the Job's pods; empty if they have none.
func JobOf(pool *v1alpha1.RelayPool, job *batchv1.Job, message string) Job {
	j := Job{
		Name: job.Name, UID: job.UID, Foreign: !metav1.IsControlledBy(job, pool), Deleting: job.DeletionTimestamp != nil,
		State: JobRunning, Message: message,
		InputsHash: job.Annotations[annotationInputs], Token: job.Annotations[annotationToken], SpecHash: job.Annotations[annotationSpec],
	}
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			j.State, j.Ended = JobComplete, c.LastTransitionTime.Time
		case batchv1.JobFailed:
			j.State, j.Ended = JobFailed, c.LastTransitionTime.Time
		default: // suspended, or about to complete or to fail
		}
	}
	return j
}

// jobObject makes a Job from an apply configuration. It sets the annotations that JobOf
// reads, and makes the RelayPool the Job's controller.
func jobObject(pool *v1alpha1.RelayPool, want *JobWanted, config runtime.ApplyConfiguration) (*batchv1.Job, error) {
	if config == nil {
		return nil, errors.New("its object was not built")
	}
	content, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	var job batchv1.Job
	if err := json.Unmarshal(content, &job); err != nil {
		return nil, fmt.Errorf("decode the object: %w", err)
	}
	spec, err := specHash(pool, content)
	if err != nil {
		return nil, err
	}
	if job.Annotations == nil {
		job.Annotations = map[string]string{}
	}
	job.Name, job.Namespace = want.Name, pool.Namespace
	job.Annotations[annotationInputs] = want.InputsHash
	job.Annotations[annotationToken] = want.Token
	job.Annotations[annotationSpec] = spec
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pool, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind))}
	return &job, nil
}

// specHash returns a hash of the object and of what its pods read from the fleet's
// ConfigMap at their start. A running pod that waits for a wrong endpoint would never read
// the corrected endpoint, so a Job with another hash is replaced.
func specHash(pool *v1alpha1.RelayPool, object []byte) (string, error) {
	spec, err := json.Marshal([]any{pool.Spec.Pool, pool.Spec.Solana, pool.Spec.Database})
	if err != nil {
		return "", fmt.Errorf("encode the spec that its pods read: %w", err)
	}
	sum := sha256.Sum256(append(spec, object...))
	return hex.EncodeToString(sum[:8]), nil
}
