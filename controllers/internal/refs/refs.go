// Package refs reads the Secrets and ConfigMaps that a RelayPool names. It gets each by its name,
// at an interval, and never lists or watches them. It keeps whether they are valid and which
// versions were read, and drops the values of Secrets at once.
package refs

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Kind is the kind of an object that a RelayPool names.
type Kind string

// The kinds.
const (
	Secret    Kind = "Secret"
	ConfigMap Kind = "ConfigMap"
)

// Problem is something that a person has to correct in an object, or an object that
// a person has to create.
type Problem struct {
	// Kind and Name identify the object. Key is the name of the value in it, empty
	// when the object as a whole is meant.
	Kind Kind
	Name string
	Key  string
	// Reason is the reason of a condition: a reason of SecretsResolved in api/v1alpha1, or a
	// reason that is documented by the package that made the problem.
	Reason string
	// Message is a sentence for a person: which object and key, what was expected,
	// the length or kind received, and what to do. It never contains a value.
	Message string
}

// Object is an object as it was read. UID and ResourceVersion change when the object
// changes. A hash of them is on the pod template, so that each change replaces the pods.
type Object struct {
	Kind            Kind
	Name            string
	UID             types.UID
	ResourceVersion string
}

// Payer is a fee payer whose key is in a Secret that the user named.
type Payer struct {
	// Secret and Key say where the private key is.
	Secret, Key string
	// Address is the public half of the key in base58.
	Address string
}

// Unread is an object that could not be read in the last reading. Its content may still be
// valid.
type Unread struct {
	Kind Kind
	Name string
	// Cause is the API server's reason, such as Forbidden or Timeout.
	Cause string
	// LastRead is the time at which the object was last read; zero if it was never read.
	LastRead time.Time
	// Err is for the log. It names the object and contains nothing of its content.
	Err error
}

// Facts is everything that is known about the objects that one RelayPool names. An object that
// could not be read in the last reading keeps its last known state.
type Facts struct {
	// ReadAt is when the last reading began, and Next is when another is due.
	ReadAt, Next time.Time
	// Resolved are the existing objects whose changes replace the pods, sorted by kind and name.
	Resolved []Object
	// Payers are the usable keys of spec.feePayers.secretRefs in their order, each
	// address once.
	Payers []Payer
	// Profile and VerifyingKey are contents of ConfigMaps; nil if no ConfigMap is named, if it
	// was never read, or if Problems has an entry for it. This package checks only that
	// VerifyingKey is a JSON object. Package pool reports any other fault of the key.
	Profile, VerifyingKey []byte
	// Problems are sorted by kind, name and key.
	Problems []Problem
	// Unread are the objects that could not be read. If LastRead is zero, nothing is known about
	// the object. The facts are then incomplete, and a pass must not treat the object as missing.
	Unread []Unread
}

// Known reports whether every object has been read at least once.
func (f Facts) Known() bool {
	if f.ReadAt.IsZero() {
		return false
	}
	for _, u := range f.Unread {
		if u.LastRead.IsZero() {
			return false
		}
	}
	return true
}

// Complete reports whether everything that the spec names is known and valid, so that
// the fleet can be deployed.
func (f Facts) Complete() bool { return f.Known() && len(f.Problems) == 0 }
