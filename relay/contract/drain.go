package contract

import "time"

// Drain timings, from the moment when a pod is asked to stop. Their sum is the pod's grace
// period, so that a shutdown never cancels a send.
const (
	// PreStop lets endpoints remove the pod before it gets SIGTERM.
	PreStop = 5 * time.Second
	// HTTPShutdown lets requests end; those that wait for an outcome get a link to follow it.
	HTTPShutdown = 20 * time.Second
	// QueueStop lets running steps end.
	QueueStop = 10 * time.Second
	// HandOver releases the leases of work that is still under way. With a hanging database
	// it takes two lease durations: half of one for running steps, half to defer them, and
	// one for the rest.
	HandOver = 20 * time.Second
	// Margin is for everything that the other timings omit.
	Margin = 5 * time.Second
	// TerminationGrace is the pod's terminationGracePeriodSeconds.
	TerminationGrace = PreStop + HTTPShutdown + QueueStop + HandOver + Margin
)
