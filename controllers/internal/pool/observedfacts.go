package pool

import (
	"strconv"
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

// Facts is everything that one pass observed. A part that could not be read is unknown: it
// counts neither as missing nor as zero.
type Facts struct {
	// Now is when the pass began.
	Now time.Time
	// Pool is the RelayPool as it was read. No step of the pass changes it.
	Pool *v1alpha1.RelayPool
	// References are the Secrets and ConfigMaps that the spec names.
	References refs.Facts
	// Target is what to read from the chain for the declared pool. It lacks the parts that
	// need unresolved objects.
	Target Target
	// Keys are the generated keys of fee payers, and Jobs are the Jobs that rotate them.
	// KeysKnown is false when the keys or the Jobs could not be read.
	Keys      keys.Facts
	Jobs      []keys.Job
	KeysKnown bool
	// Chain is the last reading of the declared pool; ChainRead is false before the first
	// reading.
	Chain     chainwatch.Reading
	ChainRead bool
	// Fleet is the Deployment and its pods.
	Fleet Fleet
	// Autoscaler is the status of the autoscaler.
	Autoscaler Autoscaler
	// Exposure is what leads clients from outside of the cluster to the fleet.
	Exposure Exposure
	// Backlog is the last reading of the queue.
	Backlog Backlog
	// Capabilities are the optional kinds that the cluster has.
	Capabilities build.Capabilities
	// Unread has the errors of the parts that could not be read. Their texts are only
	// logged.
	Unread map[Part]error
}

// Part is a part of the facts. If one part cannot be read, the others may still be known.
type Part string

// The parts.
const (
	PartReferences   Part = "references"
	PartKeys         Part = "keys"
	PartFleet        Part = "fleet"
	PartAutoscaler   Part = "autoscaler"
	PartExposure     Part = "exposure"
	PartCapabilities Part = "capabilities"
)

// isUnread reports whether a part could not be read in this pass.
func (f *Facts) isUnread(p Part) bool { return f.Unread[p] != nil }

// Fleet is the Deployment and its pods.
type Fleet struct {
	// Deployment is the Deployment that the RelayPool owns; nil without one.
	Deployment *appsv1.Deployment
	// Pods are all pods that the fleet's selector matches, including terminating ones.
	Pods []corev1.Pod
}

// deploymentReplicas returns the replicas that the Deployment declares, or 0 without a Deployment.
func (f Fleet) deploymentReplicas() int32 {
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
	// Present: the autoscaler exists.
	Present bool
	// Working is whether the autoscaler can read its metric and set the fleet's size; nil
	// if the autoscaler's status says neither.
	Working *bool
	// Stuck: the autoscaler cannot change the fleet's size, whatever the metric's value.
	Stuck bool
	// Message is the message of the autoscaler's condition.
	Message string
}

// Backlog is the fleet's queue, as read from one of its pods.
type Backlog struct {
	// At is the time of the reading; zero without one.
	At time.Time
	// Due counts the submissions that can be processed now. More pods would process them
	// sooner.
	Due int64
	// Oldest is the age of the oldest due submission, in whole seconds.
	Oldest time.Duration
	// Held counts, by reason, the submissions that cannot be processed now. More pods would
	// not change that.
	Held map[string]int64
	// Old: the reading is too old to describe the present queue.
	Old bool
}

// heldTotal returns the sum of Held.
func (b Backlog) heldTotal() (n int64) {
	for _, count := range b.Held {
		n += count
	}
	return n
}

// Target is what to read from the chain for a RelayPool.
type Target struct {
	// Query is the query for the chain watcher, without payers.
	Query chainwatch.Query
	// Problems are the ConfigMaps with invalid content.
	Problems []refs.Problem
}

// joinFirst joins the first parts of a message, at most limit of them, and adds the
// number of the omitted parts.
func joinFirst(parts []string, limit int) string {
	if len(parts) <= limit {
		return strings.Join(parts, "; ")
	}
	return strings.Join(parts[:limit], "; ") + "; and " + plural(len(parts)-limit, "more", "more")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
