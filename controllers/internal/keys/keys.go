// Package keys makes and rotates the fee payers' keys of RelayPools with
// spec.feePayers.generate. Keys in named Secrets, and signers, are used beside them and never
// changed.
//
// Each key is in an immutable Secret of its own. The Secret's name is derived from the
// RelayPool's name, so the operator needs only get, create and patch on Secrets. These
// Secrets have no owner, and nothing here deletes or overwrites one. Their label with the
// key's state is the source of truth of a rotation: together with the Jobs and the
// Deployment it determines the next step. If the operator dies, the next leader continues
// at the same point.
//
// A pass observes (Observer), decides (Decide, pure) and writes (Writer).
package keys

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// DataKey is the name of the value in a generated key's Secret. The value is a JSON array of
// 64 numbers, private half first, as `relay keygen` writes it.
const DataKey = "key"

// These are the labels and the annotations of a generated key's Secret.
const (
	// LabelPool is the RelayPool's name.
	LabelPool = build.LabelPool
	// LabelRevision and LabelIndex are the numbers in the Secret's name.
	LabelRevision = "relaypool.dev/payer-revision"
	LabelIndex    = "relaypool.dev/payer-index"
	// LabelState is active, incoming, draining or retired.
	LabelState = build.LabelPayerState
	// AnnotationAddress is the public half in base58, for people; the operator
	// derives it from the key.
	AnnotationAddress = "relaypool.dev/payer-address"
	// AnnotationBackedUp acknowledges a copy of the key. Its value is the key's address, so that
	// nobody acknowledges a key that they did not look at. The operator never writes it.
	AnnotationBackedUp = "relaypool.dev/backed-up"
)

// With these annotations of a RelayPool, a person requests an action. Every new value
// requests the action once.
const (
	// AnnotationRetry requests another attempt at the failed step of a rotation.
	AnnotationRetry = "relaypool.dev/retry-rotation"
	// AnnotationSweepRetired requests that the funds of retired keys move to the active ones.
	AnnotationSweepRetired = "relaypool.dev/sweep-retired"
)

// FieldOwner is the operator's field manager.
const FieldOwner = "relaypool-operator"

// Key is one generated key, without its private half.
type Key struct {
	// Revision and Index are the numbers in the Secret's name.
	Revision, Index int32
	// Secret is the name of the Secret; UID and ResourceVersion identify what was read.
	Secret          string
	UID             types.UID
	ResourceVersion string
	// Created is when the Secret was made.
	Created time.Time
	// Address is the public half in base58, derived from the private one.
	Address string
	// State is the state that the label LabelState has.
	State v1alpha1.FeePayerState
	// AnnotationOutdated: the annotation with the address is missing or wrong.
	AnnotationOutdated bool
	// BackedUp: somebody has acknowledged a copy of the key.
	BackedUp bool
}

// Facts are the existing generated keys of one RelayPool.
type Facts struct {
	// ReadAt is when the last reading began, and Next is when another is due.
	ReadAt, Next time.Time
	// Keys are sorted by revision and index.
	Keys []Key
	// Problems are Secrets that have the name of a key but are not keys of this
	// RelayPool, reason SecretForeign. They are never changed.
	Problems []refs.Problem
}

// Mount is a key file in the relay's pods: the same fields as build.PayerMount.
type Mount struct {
	// Secret and Key are the names of the Secret and of its value.
	Secret, Key string
}

// JobState is whether a Job runs, is complete or has failed.
type JobState string

// The states of a Job.
const (
	JobRunning  JobState = "Running"
	JobComplete JobState = "Complete"
	JobFailed   JobState = "Failed"
)

// Job is an existing rotation Job.
type Job struct {
	Name string
	UID  types.UID
	// Foreign: the Job is not controlled by this RelayPool.
	Foreign bool
	// Deleting: the Job is being deleted, and its name is still taken.
	Deleting bool
	State    JobState
	// Ended is when the Job became complete or failed; zero while it runs.
	Ended time.Time
	// InputsHash is the hash of what the Job was made for: step and keys, or the request to
	// sweep retired keys.
	InputsHash string
	// Token is the value of the annotation that requested the Job.
	Token string
	// SpecHash is the hash of the object as it was made, and of what its pods read at their
	// start.
	SpecHash string
	// Message is the last line of the newest termination message of the Job's pods; empty if
	// they have none. It contains no secrets.
	Message string
}

// Rollout is what the fleet's Deployment and pods have mounted.
type Rollout struct {
	// Known: Deployment and pods could be read.
	Known bool
	// Template are the Secrets that the Deployment's pod template mounts; nil without a
	// Deployment.
	Template []string
	// Complete: every existing replica was made from the newest template.
	Complete bool
	// Pods are the Secrets that pods mount, including terminating pods.
	Pods []string
}

// Balance is a key's balance at the last reading of the chain.
type Balance struct {
	Lamports uint64
	// At is the time at which the balance was read. After a sweep of the key, a balance counts
	// only if it was read after the sweep.
	At time.Time
	// RunwayHours is for how many hours the balance lasts; nil if unknown.
	RunwayHours *int64
}

// Input is everything on which Decide bases its plan.
type Input struct {
	Pool *v1alpha1.RelayPool
	// Keys are the generated keys, and Refs are the keys of spec.feePayers.secretRefs.
	Keys Facts
	Refs []refs.Payer
	Jobs []Job
	// Rollout is what the fleet's Deployment and pods have mounted.
	Rollout Rollout
	// Balances are the balances by address. A key without an entry has an unknown balance.
	Balances map[string]Balance
	// Blocked says why a rotation Job would fail, such as a Secret that is not
	// resolved; a rotation waits until Blocked is empty.
	Blocked string
	Now     time.Time
}

// NewKey is a key to be made.
type NewKey struct {
	Secret          string
	Revision, Index int32
	State           v1alpha1.FeePayerState
}

// LabelChange writes all labels and the annotation of a key's Secret. The label of the
// state becomes State.
type LabelChange struct {
	Key   Key
	State v1alpha1.FeePayerState
}

// JobWanted is a Job that the plan needs: for one step of a rotation, or for a sweep of keys
// that are no longer used.
type JobWanted struct {
	Name string
	// Step is Fund, Drain or Sweep.
	Step     v1alpha1.RotationStep
	Revision int32
	// From are the keys whose funds are moved. To are the keys that receive them.
	From, To []Mount
	// InputsHash is the hash of what the Job is made for.
	InputsHash string
	// Token is the value of the annotation that requests the Job.
	Token string
	// Existing is the running Job of that name; nil when there is none.
	Existing *Job
}

// Event is an event on the RelayPool. The reconciler emits a plan's events after it has written
// the status.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is one of the events of api/v1alpha1.
	Reason string
	// Action is what was done, in CamelCase.
	Action string
	// Secret is the Secret that the event is about; empty when there is no single Secret. It
	// keeps events apart: the recorder merges events that differ only in their note.
	Secret string
	Note   string
}

// Plan is what to do about the keys, and what to report about them.
type Plan struct {
	// Create are the keys to make. Label are the label changes to write after that. The Writer
	// keeps the order of the two lists, and stops at the first failure. A pass that writes a
	// key or a label does not change the Deployment, and the next pass observes again.
	Create []NewKey
	Label  []LabelChange
	// Job is the Job that has to exist; nil if none has to. The Writer makes a missing Job, and
	// replaces a Job that runs with another spec.
	Job *JobWanted
	// DeleteJobs are the Jobs to delete: the Jobs of earlier rotations, and Jobs whose name
	// the next Job needs. The Writer deletes them, because package apply deletes no Jobs.
	DeleteJobs []Job
	// Mounted are the keys that the fleet's pods mount. When the list is empty and the spec has no
	// signers, no key is usable, and the Deployment must not be made or changed.
	Mounted []Mount
	// RolloutInputs are the generated Secrets in Mounted. They are part of a hash, and the pods
	// are replaced when the hash changes. RolloutInputs have no resource versions, because a
	// change of labels must not replace pods.
	RolloutInputs []refs.Object
	// Payers is status.feePayers, with balances that are not rounded.
	Payers []v1alpha1.FeePayerStatus
	// NotBackedUp are the keys that may hold funds and whose copy nobody has acknowledged.
	NotBackedUp []Key
	// Rotation is status.rotation; nil when there has been none.
	Rotation *v1alpha1.RotationStatus
	// Rotating: a rotation is under way. Failed: the rotation's step failed, and is not
	// retried until a person requests it.
	Rotating, Failed bool
	// Problems are what a person has to resolve. Reasons: SecretForeign, SecretNotFound for
	// a key that existed before, DuplicateKey, NoPayers, RotationFailed, RetiredKeyFunded.
	Problems []refs.Problem
	Events   []Event
}

// Writes reports whether keys or labels are to be written.
func (p Plan) Writes() bool { return len(p.Create)+len(p.Label) > 0 }
