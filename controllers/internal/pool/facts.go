package pool

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// Facts are all that one pass observed. What could not be read is unknown, which
// is neither missing nor zero.
type Facts struct {
	// Now is when the pass began.
	Now time.Time
	// Pool is the RelayPool as it was read. It is not changed.
	Pool *v1alpha1.RelayPool
	// References are the Secrets and ConfigMaps that the spec names.
	References refs.Facts
	// Target is the declared pool, without what is not resolved.
	Target Target
	// Keys are the generated fee payers' keys, and Jobs the Jobs of their
	// rotation. KeysKnown is false when they could not be read.
	Keys      keys.Facts
	Jobs      []keys.Job
	KeysKnown bool
	// Chain is the last reading; ChainRead is false before the first.
	Chain     chainwatch.Reading
	ChainRead bool
	// Fleet is what runs.
	Fleet Fleet
	// Autoscaler is what the autoscaler says of itself.
	Autoscaler Autoscaler
	// Backlog is the last reading of the queue.
	Backlog Backlog
	// Capabilities are the optional kinds that the cluster has.
	Capabilities build.Capabilities
	// Unread joins why facts could not be read, by what they are of. Their texts
	// are logged, and shown nowhere.
	Unread map[Part]error
}

// Part is a part of the facts that can fail to be read by itself.
type Part string

// The parts.
const (
	PartReferences   Part = "references"
	PartKeys         Part = "keys"
	PartFleet        Part = "fleet"
	PartAutoscaler   Part = "autoscaler"
	PartCapabilities Part = "capabilities"
)

// unread reports whether a part could not be read in this pass.
func (f *Facts) unread(p Part) bool { return f.Unread[p] != nil }

// Fleet is the Deployment and its pods.
type Fleet struct {
	// Deployment of the RelayPool; nil when there is none or a foreign one.
	Deployment *appsv1.Deployment
	// Pods that the fleet's selector finds, those that end included.
	Pods []corev1.Pod
}

// live is the number of replicas that the Deployment declares; 0 without one.
func (f Fleet) live() int32 {
	if f.Deployment == nil {
		return 0
	}
	if f.Deployment.Spec.Replicas == nil {
		return 1
	}
	return *f.Deployment.Spec.Replicas
}

// Autoscaler is the status of a HorizontalPodAutoscaler or ScaledObject.
type Autoscaler struct {
	// Present: there is one.
	Present bool
	// Working is whether it can read its metric; nil if its status does not say.
	Working *bool
	// Stuck: it cannot change the fleet's size, at any value of the metric.
	Stuck bool
	// Message is the condition's.
	Message string
}

// Backlog is the fleet's queue, as read from one of its pods.
type Backlog struct {
	// At is the time of the reading; zero without one.
	At time.Time
	// Due counts the submissions that more pods could take up.
	Due int64
	// Oldest is the age of the oldest of them, in whole seconds.
	Oldest time.Duration
	// Held counts the submissions that more pods would not advance, by reason.
	Held map[string]int64
	// Old says that the reading is too old to describe the present queue.
	Old bool
}

// held is the sum of Held.
func (b Backlog) held() (n int64) {
	for _, count := range b.Held {
		n += count
	}
	return n
}

// Target is what the chain is to be asked for, or why that is not known.
type Target struct {
	// Query for the chain watcher, without payers.
	Query chainwatch.Query
	// Problems are contents of ConfigMaps that are not what they must be.
	Problems []refs.Problem
}

// sentences joins what is to be said, the first few in full.
func sentences(parts []string, most int) string {
	if len(parts) <= most {
		return strings.Join(parts, "; ")
	}
	return strings.Join(parts[:most], "; ") + "; and " + plural(len(parts)-most, "more", "more")
}
