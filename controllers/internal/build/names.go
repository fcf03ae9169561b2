package build

import "fmt"

// RelayContainer is the name of the relay's container, in the Deployment's pods and
// in those of rotation Jobs.
const RelayContainer = "relay"

// OperationsServiceName returns the name of the Service for the operations port. KEDA reads the
// backlog through this Service.
func OperationsServiceName(pool string) string { return pool + "-operations" }

// Step is the work of a rotation Job.
type Step string

// The steps that run as Jobs.
const (
	// StepFund moves lamports from the old payers to the new, up to the target balance.
	StepFund Step = "fund"
	// StepDrain waits until no transaction that the old payers signed can land any more.
	StepDrain Step = "drain"
	// StepSweep moves the old payers' remaining lamports to a new payer.
	StepSweep Step = "sweep"
)

// JobName returns the name of the Job that runs a step of the rotation to a revision.
func JobName(pool string, revision int32, step Step) string {
	return fmt.Sprintf("%s-payer-%d-%s", pool, revision, step)
}
