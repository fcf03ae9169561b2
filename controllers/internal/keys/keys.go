// Package keys makes and rotates the fee payers' keys of RelayPools with
// spec.feePayers.generate.
//
// Each key is in an immutable Secret of its own with a name that follows from
// the RelayPool's, so the operator gets along with get, create and patch on
// Secrets. Nobody owns these Secrets, and nothing here deletes or overwrites
// one. The label of a key's state is the truth of a rotation: with the Jobs and
// the Deployment it says which step is next, so an operator that dies anywhere
// goes on where it was.
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

// DataKey is the name of the value in a generated key's Secret: a JSON array of
// 64 numbers, private half first, as relay keygen writes it.
const DataKey = "key"

// Labels of a generated key's Secret, and its annotation.
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
)

// Annotations of a RelayPool by which a person has something done once more;
// every new value asks once.
const (
	// AnnotationRetry has the failed step of a rotation tried again.
	AnnotationRetry = "relaypool.dev/retry-rotation"
	// AnnotationSweepRetired has what retired keys hold moved to the active ones.
	AnnotationSweepRetired = "relaypool.dev/sweep-retired"
)

// FieldOwner is who the operator is in managed fields.
const FieldOwner = "relaypool-operator"

// Key is one generated key, by its public half.
type Key struct {
	// Revision and Index are the numbers in the Secret's name.
	Revision, Index int32
	// Secret is the name of the Secret, UID and ResourceVersion which one it was.
	Secret          string
	UID             types.UID
	ResourceVersion string
	// Created is when the Secret was made.
	Created time.Time
	// Address is the public half in base58, derived from the private one.
	Address string
	// State is the label's.
	State v1alpha1.FeePayerState
	// Unmarked: the annotation of the address is missing or wrong.
	Unmarked bool
}

// Facts are the generated keys of one RelayPool that are there.
type Facts struct {
	// ReadAt is when the last reading began, and Next when another is due.
	ReadAt, Next time.Time
	// Keys are sorted by revision and index.
	Keys []Key
	// Problems are Secrets with the name of a key that are not keys of this
	// RelayPool, reason SecretForeign. They are never touched.
	Problems []refs.Problem
}

// Mount is a key file in the relay's pods: the same fields as build.PayerMount.
type Mount struct {
	// Secret and Key are the names of the Secret and of its value.
	Secret, Key string
}

// JobState is how far a Job has come.
type JobState string

// The states of a Job.
const (
	JobRunning  JobState = "Running"
	JobComplete JobState = "Complete"
	JobFailed   JobState = "Failed"
)

// Job is a rotation Job that is there.
type Job struct {
	Name string
	UID  types.UID
	// Foreign: the Job is not controlled by this RelayPool.
	Foreign bool
	// Deleting: it is on its way out, and its name is still taken.
	Deleting bool
	State    JobState
	// Ended is when it became complete or failed; zero while it runs.
	Ended time.Time
	// Inputs is the hash of what the Job was made for: step and keys, or the
	// request to sweep retired keys.
	Inputs string
	// Token is the annotation's value that the Job answers.
	Token string
	// Spec is the hash of the object as it was made.
	Spec string
	// Message is the last line that the Job's pod left, which holds no secrets;
	// empty when it left none.
	Message string
}

// Rollout is what the fleet's Deployment and pods have mounted.
type Rollout struct {
	// Known: Deployment and pods could be read.
	Known bool
	// Template are the Secrets that the Deployment's pod template mounts, nil when
	// there is no Deployment.
	Template []string
	// Complete: every replica that there is was made from the newest template.
	Complete bool
	// Pods are the Secrets that pods mount, those included that are terminating.
	Pods []string
}

// Balance is what a key held when the chain was last read.
type Balance struct {
	Lamports uint64
	// At is when it was read. What a key was swept of is only believed to be there
	// when it was read after that.
	At time.Time
	// RunwayHours is how long it lasts; nil when that is not known.
	RunwayHours *int64
}

// Input is all that a decision is made from.
type Input struct {
	Pool *v1alpha1.RelayPool
	// Keys are the generated keys, and Refs those of spec.feePayers.secretRefs.
	Keys Facts
	Refs []refs.Payer
	Jobs []Job
	// Rollout is the fleet's.
	Rollout Rollout
	// Balances are by address; one that is missing is not known.
	Balances map[string]Balance
	// Blocked says what a rotation Job would fail of, such as a Secret that is not
	// resolved; a rotation waits for that. Empty: nothing.
	Blocked string
	Now     time.Time
}

// NewKey is a key to be made.
type NewKey struct {
	Secret          string
	Revision, Index int32
	State           v1alpha1.FeePayerState
}

// LabelChange has a key's labels and annotation written anew with State.
type LabelChange struct {
	Key   Key
	State v1alpha1.FeePayerState
}

// JobWanted is a step of a rotation that a Job takes.
type JobWanted struct {
	Name string
	// Step is Fund, Drain or Sweep.
	Step     v1alpha1.RotationStep
	Revision int32
	// From are the keys that are moved away from, To those moved to.
	From, To []Mount
	// Inputs is the hash of what the Job is made for.
	Inputs string
	// Token is the value of the annotation that the Job answers.
	Token string
	// Existing is the Job of that name that is running; nil when there is none.
	Existing *Job
}

// Event is emitted once what was decided has been written.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is one of the events of api/v1alpha1.
	Reason string
	// Action is what was done, in CamelCase.
	Action string
	// Secret is the one that it is about; empty when it is about no single one.
	// Events that differ in their note alone are taken for one.
	Secret string
	Note   string
}

// Plan is what to do about the keys, and what to say of them.
type Plan struct {
	// Create are made in their order, then Label written in theirs; the Writer
	// stops at the first that fails. A pass that writes either begins anew before
	// it touches the Deployment.
	Create []NewKey
	Label  []LabelChange
	// Job is the Job that has to be there; nil when none has to. It is made when
	// it is missing, and replaced while it runs with another spec.
	Job *JobWanted
	// DeleteJobs are Jobs in the way of the next. Other Jobs of this RelayPool's
	// rotations are kept: pruning leaves all of them alone.
	DeleteJobs []Job
	// Mounted are the keys that the fleet's pods use. Empty: no key is usable, and
	// the Deployment is not to be made or changed.
	Mounted []Mount
	// Rollout are the objects whose change rolls the pods: the generated ones of
	// Mounted, without resource versions, because only labels of theirs can change.
	Rollout []refs.Object
	// Payers is status.feePayers, balances not rounded.
	Payers []v1alpha1.FeePayerStatus
	// Rotation is status.rotation; nil when there has been none.
	Rotation *v1alpha1.RotationStatus
	// Rotating: a rotation is under way. Failed: its step failed, and is not tried
	// again until a person asks for it.
	Rotating, Failed bool
	// Problems are for a person. Reasons: SecretForeign, SecretNotFound for a key
	// that was there, NoPayers, RotationFailed, RetiredKeyFunded.
	Problems []refs.Problem
	Events   []Event
}

// Writes tells whether keys or labels are to be written.
func (p Plan) Writes() bool { return len(p.Create)+len(p.Label) > 0 }
