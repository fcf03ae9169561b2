package suite

import (
	"context"
	"fmt"
	"strings"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/report"
	"github.com/relaypool/relaypool/hack/e2e/stage"
)

const (
	// firstFunds are what the fleet's payer gets: enough for tens of thousands of
	// transactions.
	firstFunds = 200 * solana.LAMPORTS_PER_SOL
	// mostReplicas is what a backlog grows the fleet to, by one pod for so many
	// jobs that wait.
	mostReplicas, jobsPerReplica = 3, 24
)

// hold follows the documentation's second command: the RelayPool says what is
// missing until it is there.
func (s *suite) hold(ctx context.Context, r *report.Scenario) (err error) {
	if err := s.Cluster.MakeNamespace(ctx, namespace, "restricted"); err != nil {
		return err
	}
	staged := s.Now()
	if s.stage, err = stage.Up(ctx, stage.Options{
		Cluster: s.Cluster, Namespace: namespace, Images: s.Images, VerifyingKey: s.VerifyingKey, Ring: ring,
	}); err != nil {
		return err
	}
	setUp := s.Now().Sub(staged)
	r.Saw("Postgres, chain and clients' pod serve")
	if s.vault, err = s.stage.Chain.Balance(ctx, s.stage.Chain.Market.VaultSOL, rpc.CommitmentConfirmed); err != nil {
		return err
	}
	if err := s.stage.MakeDatabase(ctx, fleetName, fleetName+"-database"); err != nil {
		return err
	}
	s.fleet = &fleet{s.Cluster, fleetName}
	if err := s.Cluster.Client.Create(ctx, s.pool(fleetName, mostReplicas, jobsPerReplica)); err != nil {
		return fmt.Errorf("make RelayPool %s: %w", fleetName, err)
	}
	if err := s.held(ctx, r); err != nil {
		return err
	}
	if err := s.fund(ctx, r, s.fleet, firstFunds); err != nil {
		return err
	}
	authority, err := s.stage.Chain.Authority(ctx)
	if err != nil {
		return err
	}
	initialised := s.Now()
	if err := s.stage.Chain.Initialise(ctx, authority); err != nil {
		return err
	}
	r.Saw("the pool's Initialize is sent")
	if _, err := s.fleet.condition(ctx, v1alpha1.ConditionReady, metav1.ConditionTrue, ""); err != nil {
		return err
	}
	pods, err := s.fleet.settled(ctx, "serves", anyPod)
	if err != nil {
		return err
	}
	ready := s.Now()
	r.Saw("the RelayPool is Ready, with %d pod", len(pods))
	s.Report.Figure("Initialize sent to Ready", "%.1f s", ready.Sub(initialised).Seconds())
	s.Report.Figure("helm install to Ready, less the set-up of Postgres and chain", "%.1f s", (ready.Sub(s.installed) - setUp).Seconds())
	r.Sum("install to Ready %.1f s; initialised to Ready %.1f s", (ready.Sub(s.installed) - setUp).Seconds(), ready.Sub(initialised).Seconds())
	if _, err := s.fleet.condition(ctx, v1alpha1.ConditionAutoscalingActive, metav1.ConditionTrue, v1alpha1.ReasonScaling); err != nil {
		return err
	}
	r.Saw("AutoscalingActive is True: the autoscaler reads the backlog")
	return s.stage.Chain.FillPool(ctx)
}

// held checks what the RelayPool says and does before its pool is there.
func (s *suite) held(ctx context.Context, r *report.Scenario) error {
	message, err := s.fleet.condition(ctx, v1alpha1.ConditionPoolInitialised, metav1.ConditionFalse, v1alpha1.ReasonAccountMissing)
	if err != nil {
		return err
	}
	r.Saw("PoolInitialised=False AccountMissing: %s", message)
	if _, err := s.fleet.condition(ctx, v1alpha1.ConditionReady, metav1.ConditionFalse, ""); err != nil {
		return err
	}
	return cluster.Hold(ctx, "no pod starts before the pool is there", cluster.Minutes(0.1), func(ctx context.Context) (string, error) {
		pods, err := s.fleet.pods(ctx)
		if err != nil || len(pods) == 0 {
			return "", err
		}
		return fmt.Sprintf("there are %d", len(pods)), nil
	})
}

// fund sends lamports where the condition says, and waits until it is content.
func (s *suite) fund(ctx context.Context, r *report.Scenario, f *fleet, lamports uint64) error {
	message, err := f.condition(ctx, v1alpha1.ConditionFeePayersFunded, metav1.ConditionFalse, v1alpha1.ReasonUnderfunded)
	if err != nil {
		return err
	}
	keys, _, err := f.payers(ctx, v1alpha1.PayerActive)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if !strings.Contains(message, key.String()) {
			return fmt.Errorf("the condition FeePayersFunded does not name the address %s: %s", key, message)
		}
		if err := s.stage.Chain.Fund(ctx, key, lamports); err != nil {
			return err
		}
	}
	r.Saw("funded %d payer as the condition says", len(keys))
	_, err = f.condition(ctx, v1alpha1.ConditionFeePayersFunded, metav1.ConditionTrue, "")
	return err
}
