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
// keys have all funds except the fees in the end. story checks the invariants meanwhile.
func TestRotations(t *testing.T) {
	t.Parallel()
	w := newWorks(t)
	for name, rotate := range map[string]func(*works, *testing.T){
		"undisturbed": (*works).undisturbed,
		"the operator dies before each of its writes":      (*works).deathBeforeWrites,
		"the operator dies after each of its writes":       (*works).deathAfterWrites,
		"the operator's process is killed in each step":    (*works).killedOperator,
		"the process of each Job is killed":                (*works).killedJobs,
		"the old payers are empty":                         (*works).emptyPayers,
		"the chain is lost during a rotation to more keys": (*works).lostChain,
		"a pause during a rotation to fewer keys":          (*works).pausedThenFunded,
		"a second rotation is requested during the first":  (*works).raisedTwice,
		"the RelayPool is deleted in each step":            (*works).deleted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rotate(w, t)
		})
	}
}

// The status shows each step, and each step has an event.
func (w *works) undisturbed(t *testing.T) {
	r := w.begin(t)
	r.operate(t)
	r.declare(t, 2, sol)
	r.rotate(t, 1, 2)
	r.check(t, 1, 2)
	if diff := cmp.Diff(steps(), r.story.shownSteps(1)); diff != "" {
		t.Errorf("steps in the status (-want +got):\n%s", diff)
	}
	for _, step := range steps() {
		r.awaitNote(t, v1alpha1.EventRotationStep, fmt.Sprintf("revision 1 came to the step %s", step))
	}
	for _, address := range append(r.addresses(t, 0), r.addresses(t, 1)...) {
		r.awaitNote(t, v1alpha1.EventKeyGenerated, address.String())
	}
}

func (w *works) deathBeforeWrites(t *testing.T) { w.deaths(t, true) }

func (w *works) deathAfterWrites(t *testing.T) { w.deaths(t, false) }

func (w *works) deaths(t *testing.T, answered bool) {
	r := w.begin(t)
	first := r.operate(t)
	r.declare(t, 2, sol)
	first.Stop(t)
	r.rotate(t, 1, 2)
	wrote := r.dieAtEachWrite(t, answered, func() bool { return r.story.reached(1, v1alpha1.RotationDone) })
	r.operate(t)
	r.check(t, 1, 2)
	t.Logf("%d operators died at %s", len(wrote), strings.Join(wrote, ", "))
	for _, write := range []string{
		"POST secrets", "PATCH secrets/demo-payer-1-0", "PATCH secrets/demo-payer-1-1", "PATCH secrets/demo-payer-0-0", "PATCH secrets/demo-payer-0-1",
		"POST jobs", "PATCH deployments/demo", "PUT relaypools/demo/status",
	} {
		method, path, _ := strings.Cut(write, " ")
		if !slices.ContainsFunc(wrote, func(w string) bool { return strings.HasPrefix(w, method) && strings.HasSuffix(w, "/"+path) }) {
			t.Errorf("no operator died at %s", write)
		}
	}
}

// The operator's process is killed as soon as the status shows a step, and started again.
func (w *works) killedOperator(t *testing.T) {
	program := pooltest.BuildOperator(t)
	r := w.begin(t)
	operator := pooltest.StartProgram(t, program, r.Config, r.Namespace)
	r.declare(t, 2, sol)
	r.rotate(t, 1, 2)
	for _, step := range steps() {
		r.reach(t, 1, step)
		operator.Kill(t)
		operator = pooltest.StartProgram(t, program, r.Config, r.Namespace)
	}
	r.check(t, 1, 2)
	t.Logf("the status has shown the steps %v", r.story.shownSteps(1))
}

// signedFund asks whether the Job that funds new keys has signed a transaction that can
// still land.
const signedFund = "SELECT EXISTS (SELECT FROM sweeps WHERE step = 'fund' AND state = 'open')"

// The process of each Job is killed once. A Job that moves funds is killed after it has
// signed a transaction, which may or may not be on the chain. The Job that drains is killed
// while it waits.
func (w *works) killedJobs(t *testing.T) {
	r := w.begin(t)
	r.operate(t)
	r.declare(t, 2, sol)
	r.rotate(t, 1, 2)
	for _, kill := range []struct {
		step build.Step
		when string
	}{
		{build.StepFund, signedFund},
		{build.StepDrain, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%unfinished%' AND pid <> pg_backend_pid())"},
		{build.StepSweep, "SELECT EXISTS (SELECT FROM sweeps WHERE step = 'all' AND state = 'open')"},
	} {
		job := build.JobName(poolName, 1, kill.step)
		pooltest.Eventually(t, job+" is killed on its way", func() error {
			var now bool
			if err := r.database.QueryRow(t.Context(), kill.when).Scan(&now); err != nil {
				return err
			}
			if !now || !r.jobs.Kill(job) {
				return fmt.Errorf("it is not on its way: %v", r.story.shownSteps(1))
			}
			return nil
		})
	}
	r.check(t, 1, 2)
	if got, want := r.jobs.Runs(), 6; got != want {
		t.Errorf("%d processes ran: want %d, each Job's twice", got, want)
	}
}
