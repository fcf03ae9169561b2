package suite

import (
	"context"
	"fmt"

	"github.com/gagliardetto/solana-go/rpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/judge"
	"github.com/relaypool/relaypool/hack/e2e/report"
)

// rotatedPayers is how many keys there are from the rotation on.
const rotatedPayers = 2

// rotation replaces the fleet's keys under load.
func (s *suite) rotation(ctx context.Context, r *report.Scenario) error {
	if err := s.startTraffic(ctx, calmRate); err != nil {
		return err
	}
	old, secrets, err := s.fleet.payers(ctx, v1alpha1.PayerActive)
	if err != nil {
		return err
	}
	served, err := s.serving(ctx, r, judge.Bounds{Away: mostAway, Share: orderly})
	if err != nil {
		return err
	}
	before := s.traffic.load.Journal().Progress()
	began := s.Now()
	if err := s.fleet.change(ctx, func(spec *v1alpha1.RelayPoolSpec) {
		spec.FeePayers.Generate.Count = rotatedPayers
		spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: 1}
	}); err != nil {
		return fmt.Errorf("raise the rotation's revision: %w", err)
	}
	if err := s.rotated(ctx, r); err != nil {
		return err
	}
	took := s.Now().Sub(began)
	active, _, err := s.fleet.payers(ctx, v1alpha1.PayerActive)
	if err != nil {
		return err
	}
	if len(active) != rotatedPayers {
		return fmt.Errorf("%d keys are in use after the rotation, expected %d", len(active), rotatedPayers)
	}
	for i, key := range old {
		left, err := s.stage.Chain.Balance(ctx, key, rpc.CommitmentFinalized)
		if err != nil {
			return err
		}
		if left != 0 {
			return fmt.Errorf("the retired payer %s holds %d lamports, expected 0", key, left)
		}
		kept := &corev1.Secret{}
		if err := s.Cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: secrets[i]}, kept); err != nil {
			return fmt.Errorf("the retired key's Secret has to stay: %w", err)
		}
	}
	if _, err := s.fleet.condition(ctx, v1alpha1.ConditionReady, metav1.ConditionTrue, ""); err != nil {
		return err
	}
	if err := served(); err != nil {
		return err
	}
	after := s.traffic.load.Journal().Progress()
	s.Report.Figure("a rotation of the fee payers under load, sweep included", "%.1f s", took.Seconds())
	r.Sum("%d key to %d in %.1f s; the old one holds 0 lamports and its Secret stays; %d completed meanwhile", len(old), len(active), took.Seconds(), after.Completed-before.Completed)
	return nil
}

// rotated waits for the rotation's end and tells of each step, which have to come
// in their order. Those that wait for Jobs or for pods take longer than any pause
// between two looks, and have to be among them.
func (s *suite) rotated(ctx context.Context, r *report.Scenario) error {
	var seen []string
	if err := cluster.Await(ctx, "the rotation is done", cluster.Minutes(12), func(ctx context.Context) (string, error) {
		pool, err := s.fleet.get(ctx)
		if err != nil {
			return "", err
		}
		rotation := pool.Status.Rotation
		if rotation == nil {
			return "it has not begun", nil
		}
		if step := string(rotation.Step); len(seen) == 0 || seen[len(seen)-1] != step {
			seen = append(seen, step)
			r.Saw("step %s", step)
		}
		if rotation.Step != v1alpha1.RotationDone {
			return fmt.Sprintf("it is at the step %s: %s", rotation.Step, rotation.Message), nil
		}
		return "", nil
	}); err != nil {
		return err
	}
	if err := judge.Steps(seen, rotationCourse(), rotationLong()); err != nil {
		return fmt.Errorf("the rotation's steps: %w", err)
	}
	return nil
}

// rotationCourse is a rotation's from its beginning to its end.
func rotationCourse() []string {
	return []string{
		string(v1alpha1.RotationGenerate), string(v1alpha1.RotationFund), string(v1alpha1.RotationCutOver), string(v1alpha1.RotationDrain),
		string(v1alpha1.RotationSweep), string(v1alpha1.RotationRetire), string(v1alpha1.RotationDone),
	}
}

// rotationLong are the steps of ten seconds and more.
func rotationLong() []string {
	return []string{
		string(v1alpha1.RotationFund), string(v1alpha1.RotationCutOver), string(v1alpha1.RotationDrain), string(v1alpha1.RotationSweep), string(v1alpha1.RotationDone),
	}
}
