package contract

import "time"

// Drain timings, from the moment a pod is told to go. The sum is the pod's
// grace period, so that a shutdown never cancels a send.
const (
	// PreStop lets endpoints forget the pod before it gets SIGTERM.
	PreStop = 5 * time.Second
	// HTTPShutdown lets requests end; those that wait for an outcome are told where to follow it.
	HTTPShutdown = 20 * time.Second
	// QueueStop lets running steps end.
	QueueStop = 10 * time.Second
	// HandOver gives the leases of what is still under way back. With a database
	// that hangs it takes two leases: half of one for the steps that run, half to
	// put them off, and one for the rest.
	HandOver = 20 * time.Second
	// Margin is for what the others do not count.
	Margin = 5 * time.Second
	// TerminationGrace is the pod's terminationGracePeriodSeconds.
	TerminationGrace = PreStop + HTTPShutdown + QueueStop + HandOver + Margin
)
