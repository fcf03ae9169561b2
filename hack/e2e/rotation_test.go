package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/rpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// rotatedPayers is the number of keys after the rotation.
const rotatedPayers = 2

// rotation replaces the fleet's keys under load.
func (s *suite) rotation(t *testing.T) {
	s.startTraffic(t, calmRate)
	old, secrets := s.fleet.payers(t, v1alpha1.PayerActive)
	checkService := s.startService(t, serviceBounds{MaxSilence: maxSilence, MaxFailed: failedShare})
	began := time.Now()
	s.fleet.change(t, func(spec *v1alpha1.RelayPoolSpec) {
		spec.FeePayers.Generate.Count = rotatedPayers
		spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: 1}
	})
	s.awaitRotation(t)
	s.figure("a rotation of the fee payers under load, sweep included", "%.1f s", time.Since(began).Seconds())
	if active, _ := s.fleet.payers(t, v1alpha1.PayerActive); len(active) != rotatedPayers {
		t.Fatalf("%d keys are in use after the rotation, expected %d", len(active), rotatedPayers)
	}
	for i, key := range old {
		left, err := s.stage.balance(s.ctx, key, rpc.CommitmentFinalized)
		ok(t, err)
		if left != 0 {
			t.Fatalf("the retired payer %s holds %d lamports, expected 0", key, left)
		}
		if err := s.kube.Get(s.ctx, client.ObjectKey{Namespace: namespace, Name: secrets[i]}, &corev1.Secret{}); err != nil {
			t.Fatalf("the retired key's Secret has to stay: %v", err)
		}
	}
	s.log(t, "%d key to %d; the old one holds 0 lamports and its Secret stays", len(old), rotatedPayers)
	s.fleet.awaitCondition(t, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	checkService()
}

// awaitRotation waits for the rotation's end and logs each step. The steps have to come in
// their order, and have to include the steps that wait for Jobs or for pods: those take ten
// seconds and more, longer than the pause between two polls.
func (s *suite) awaitRotation(t *testing.T) {
	t.Helper()
	var seen []string
	s.await(t, "the rotation is done", 12*time.Minute, func(ctx context.Context) error {
		pool, err := s.fleet.get(ctx)
		if err != nil {
			return err
		}
		rotation := pool.Status.Rotation
		if rotation == nil {
			return errors.New("it has not begun")
		}
		if step := string(rotation.Step); len(seen) == 0 || seen[len(seen)-1] != step {
			seen = append(seen, step)
			s.log(t, "step %s", step)
		}
		if rotation.Step != v1alpha1.RotationDone {
			return fmt.Errorf("it is at the step %s: %s", rotation.Step, rotation.Message)
		}
		return nil
	})
	ok(t, checkSteps(seen, []string{
		string(v1alpha1.RotationGenerate), string(v1alpha1.RotationFund), string(v1alpha1.RotationCutOver), string(v1alpha1.RotationDrain),
		string(v1alpha1.RotationSweep), string(v1alpha1.RotationRetire), string(v1alpha1.RotationDone),
	}, []string{
		string(v1alpha1.RotationFund), string(v1alpha1.RotationCutOver), string(v1alpha1.RotationDrain), string(v1alpha1.RotationSweep), string(v1alpha1.RotationDone),
	}))
}
