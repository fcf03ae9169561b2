package contract

import "time"

// A pod that is asked to stop goes through these phases in order. Each is the
// longest that its phase may take; all are whole seconds, as Kubernetes wants.
const (
	// DrainPreStop is slept before SIGTERM, while the endpoints drop the pod:
	// the relay still serves.
	DrainPreStop = 5 * time.Second
	// DrainHTTPShutdown bounds the answers to requests that had begun. Those
	// that wait for an outcome are told where to follow it.
	DrainHTTPShutdown = 10 * time.Second
	// DrainSoftStop bounds the steps of submissions that had begun. No new one
	// is taken; what is left is handed over.
	DrainSoftStop = 15 * time.Second
	// DrainHardGrace bounds what is left once those steps are cancelled: giving
	// leases back and closing connections.
	DrainHardGrace = 5 * time.Second
	// DrainMargin is for what the phases do not count: starting the hook,
	// delivering the signal, ending the process.
	DrainMargin = 5 * time.Second

	// TerminationGrace is what a pod needs from its deletion to its end, for
	// terminationGracePeriodSeconds. The pre-stop hook counts inside it.
	TerminationGrace = DrainPreStop + DrainHTTPShutdown + DrainSoftStop + DrainHardGrace + DrainMargin
)
