package pool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
)

// sol is a SOL in lamports.
const sol = 1_000_000_000

// The API server, the local chain and the database are real, and the Jobs run as processes
// of the relay. Only the kubelet is a stand-in. Whatever interrupts a rotation, the new
// keys finally have all funds except the fees. A rotationRecorder checks the invariants
// meanwhile.
func TestRotations(t *testing.T) {
	t.Parallel()
	w := newRotationSuite(t)
	for name, rotate := range map[string]func(*rotationSuite, *testing.T){
		"nothing disturbs the rotation":                    (*rotationSuite).undisturbed,
		"the operator dies before each of its writes":      (*rotationSuite).killedBeforeWrites,
		"the operator dies after each of its writes":       (*rotationSuite).killedAfterWrites,
		"the operator's process is killed in each step":    (*rotationSuite).killedOperator,
		"the process of each Job is killed":                (*rotationSuite).killedJobs,
		"the old payers are empty":                         (*rotationSuite).oldPayersEmpty,
		"the chain is lost during a rotation to more keys": (*rotationSuite).chainUnreachable,
		"a pause during a rotation to fewer keys":          (*rotationSuite).pausedThenRetiredKeysFunded,
		"a second rotation is requested during the first":  (*rotationSuite).secondRotationDuringFirst,
		"the RelayPool is deleted in each step":            (*rotationSuite).poolDeletedInEachStep,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rotate(w, t)
		})
	}
}

// The status shows each step, and there is an event for each.
func (w *rotationSuite) undisturbed(t *testing.T) {
	r := w.newRotation(t)
	r.startOperator(t)
	r.createPool(t, 2, sol)
	r.requestRotation(t, 1, 2)
	r.checkDone(t, 1, 2)
	if diff := cmp.Diff(steps(), r.recorder.shownSteps(1)); diff != "" {
		t.Errorf("steps in the status (-want +got):\n%s", diff)
	}
	for _, step := range steps() {
		r.awaitNote(t, v1alpha1.EventRotationStep, fmt.Sprintf("revision 1 reached the step %s", step))
	}
	for _, address := range append(r.addresses(t, 0), r.addresses(t, 1)...) {
		r.awaitNote(t, v1alpha1.EventKeyGenerated, address.String())
	}
}

func (w *rotationSuite) killedBeforeWrites(t *testing.T) { w.killAtEachWrite(t, true) }

func (w *rotationSuite) killedAfterWrites(t *testing.T) { w.killAtEachWrite(t, false) }

func (w *rotationSuite) killAtEachWrite(t *testing.T, answered bool) {
	r := w.newRotation(t)
	first := r.startOperator(t)
	r.createPool(t, 2, sol)
	first.Stop(t)
	r.requestRotation(t, 1, 2)
	executed := r.killAtEachWrite(t, answered, func() bool { return r.recorder.hasReached(1, v1alpha1.RotationDone) })
	r.startOperator(t)
	r.checkDone(t, 1, 2)
	t.Logf("%d writes were executed: %s", len(executed), strings.Join(executed, ", "))
	for _, write := range []string{
		"POST secrets", "PATCH secrets/demo-payer-1-0", "PATCH secrets/demo-payer-1-1", "PATCH secrets/demo-payer-0-0", "PATCH secrets/demo-payer-0-1",
		"POST jobs", "PATCH deployments/demo", "PUT relaypools/demo/status",
	} {
		method, path, _ := strings.Cut(write, " ")
		if !slices.ContainsFunc(executed, func(w string) bool { return strings.HasPrefix(w, method) && strings.HasSuffix(w, "/"+path) }) {
			t.Errorf("%s was not executed", write)
		}
	}
}

// The operator's process is killed as soon as the status shows a step, and started again.
func (w *rotationSuite) killedOperator(t *testing.T) {
	program := pooltest.BuildOperator(t)
	r := w.newRotation(t)
	operator := pooltest.StartProgram(t, program, r.Config, r.Namespace)
	r.createPool(t, 2, sol)
	r.requestRotation(t, 1, 2)
	for _, step := range steps() {
		r.awaitStep(t, 1, step)
		operator.Kill(t)
		operator = pooltest.StartProgram(t, program, r.Config, r.Namespace)
	}
	r.checkDone(t, 1, 2)
	t.Logf("the status has shown the steps %v", r.recorder.shownSteps(1))
}

// fundSignedQuery asks whether the Job that funds new keys has signed a transaction that can
// still land.
const fundSignedQuery = "SELECT EXISTS (SELECT FROM sweeps WHERE step = 'fund' AND state = 'open')"

// The process of each Job is killed once. A Job that moves funds is killed after it has
// signed a transaction, which may or may not be on the chain. The Job that drains is killed
// while it waits.
func (w *rotationSuite) killedJobs(t *testing.T) {
	r := w.newRotation(t)
	r.startOperator(t)
	r.createPool(t, 2, sol)
	r.requestRotation(t, 1, 2)
	for _, kill := range []struct {
		step  build.Step
		query string // returns true when the Job is to be killed
	}{
		{build.StepFund, fundSignedQuery},
		{build.StepDrain, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%unfinished%' AND pid <> pg_backend_pid())"},
		{build.StepSweep, "SELECT EXISTS (SELECT FROM sweeps WHERE step = 'all' AND state = 'open')"},
	} {
		job := build.JobName(poolName, 1, kill.step)
		pooltest.Eventually(t, job+" is killed while it runs", func() error {
			var due bool
			if err := r.database.QueryRow(t.Context(), kill.query).Scan(&due); err != nil {
				return err
			}
			if !due || !r.jobs.Kill(job) {
				return fmt.Errorf("it is not ready to be killed; steps so far: %v", r.recorder.shownSteps(1))
			}
			return nil
		})
	}
	r.checkDone(t, 1, 2)
	if got, want := r.jobs.Runs(), 6; got != want {
		t.Errorf("%d processes ran: want %d, two for each Job", got, want)
	}
}
