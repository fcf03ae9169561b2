// Package refs reads the Secrets and ConfigMaps that a RelayPool names: one get
// each, on an interval, never a list and never a watch. It keeps what tells
// whether they hold what they must, and which objects they were, and drops the
// values of Secrets at once.
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

// Problem is something that a person has to mend in an object, or to bring
// there.
type Problem struct {
	// Kind and Name are the object's, and Key is the value's name in it, empty
	// when the object as a whole is meant.
	Kind Kind
	Name string
	Key  string
	// Reason is a condition's: one of the reasons of SecretsResolved in
	// api/v1alpha1, or one that the package which made the problem documents.
	Reason string
	// Message is a sentence for a person: which object and key, what was expected,
	// the length or kind received, and what to do. It never holds a value.
	Message string
}

// Object is an object as it was read. UID and ResourceVersion change when it
// does, so pods are rolled out by a hash of these.
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
	// Address is its public half in base58.
	Address string
}

// Unread is an object that could not be read just now, which says nothing of
// what it holds.
type Unread struct {
	Kind Kind
	Name string
	// Cause is the API server's reason, such as Forbidden or Timeout.
	Cause string
	// Since is when it could last be read; zero when it never could.
	Since time.Time
	// Err is for the log. It names the object and holds nothing of it.
	Err error
}

// Facts are what is known of all that one RelayPool names. Objects that could
// not be read now keep what was last known of them.
type Facts struct {
	// ReadAt is when the last reading began, and Next when another is due.
	ReadAt, Next time.Time
	// Resolved are the objects that are there, sorted by kind and name.
	Resolved []Object
	// Payers are the usable keys of spec.feePayers.secretRefs in their order, each
	// address once.
	Payers []Payer
	// Profile and VerifyingKey are contents of ConfigMaps, nil when none is named
	// or it is not there. VerifyingKey may be malformed: the pool's check tells.
	Profile, VerifyingKey []byte
	// Problems are sorted by kind, name and key.
	Problems []Problem
	// Unread are those that could not be read. With a zero Since nothing is known
	// of them: the facts are incomplete, and no pass may act on what is missing.
	Unread []Unread
}

// Known tells whether every object has been read at least once.
func (f Facts) Known() bool {
	if f.ReadAt.IsZero() {
		return false
	}
	for _, u := range f.Unread {
		if u.Since.IsZero() {
			return false
		}
	}
	return true
}

// Complete tells whether everything that the spec names is known and as it must
// be: the fleet can be deployed.
func (f Facts) Complete() bool { return f.Known() && len(f.Problems) == 0 }
