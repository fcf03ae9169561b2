package contract

import "time"

// Drain timings, from the moment when a pod is asked to stop. Their sum is the pod's grace
// period, so that a shutdown never cancels a send.
const (
	// PreStop gives Services time to stop sending requests to the pod before it gets SIGTERM.
	PreStop = 5 * time.Second
	// HTTPShutdown lets requests end. A request that waits for an outcome is answered with a
	// link to the submission's status.
	HTTPShutdown = 20 * time.Second
	// QueueStop lets running steps end.
	QueueStop = 10 * time.Second
	// HandOver lets the relay release the leases of work that is still under way. If the
	// database hangs, this takes two lease durations: half a duration for running steps, half
	// a duration to defer them, and a whole one for the rest.
	HandOver = 20 * time.Second
	// Margin is for everything that the other timings omit.
	Margin = 5 * time.Second
	// TerminationGrace is the pod's terminationGracePeriodSeconds.
	TerminationGrace = PreStop + HTTPShutdown + QueueStop + HandOver + Margin
)
