package suite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/e2e/books"
	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/report"
)

const (
	dryName = "dry"
	// dryFunds pay for about ten transactions above the minimum.
	dryFunds = 70_000_000
	// moreFunds are sent once the payer is empty.
	moreFunds = 50 * solana.LAMPORTS_PER_SOL
	// dryRate is of a burst, which accepts far more than dryFunds pay for and, were
	// it a backlog, would call for all the pods there may be.
	dryRate, dryJobs = 40, 4
	// heldFor is how long the fleet has to keep its size: the autoscaler looks every
	// 15 s by default, at readings that are made every 10 s.
	heldFor = time.Minute
)

// dry lets a second fleet run out of lamports with a queue.
func (s *suite) dry(ctx context.Context, r *report.Scenario) error {
	f := &fleet{s.Cluster, dryName}
	if err := s.stage.MakeDatabase(ctx, dryName, dryName+"-database"); err != nil {
		return err
	}
	if err := s.Cluster.Client.Create(ctx, s.pool(dryName, mostReplicas, dryJobs)); err != nil {
		return fmt.Errorf("make RelayPool %s: %w", dryName, err)
	}
	if err := s.fund(ctx, r, f, dryFunds); err != nil {
		return err
	}
	if _, err := f.condition(ctx, v1alpha1.ConditionReady, metav1.ConditionTrue, ""); err != nil {
		return err
	}
	crowd, err := s.begin(ctx, crowd{fleet: dryName, rate: dryRate, seed: s.Seed + 1})
	if err != nil {
		return err
	}
	defer crowd.abandon()
	message, err := f.condition(ctx, v1alpha1.ConditionAutoscalingActive, metav1.ConditionTrue, v1alpha1.ReasonLimited)
	crowd.stop()
	if err != nil {
		return err
	}
	if !strings.Contains(message, "fee_payer_empty") {
		return fmt.Errorf("AutoscalingActive does not say that fee payers are empty: %s", message)
	}
	r.Saw("AutoscalingActive=True Limited: %s", message)
	waiting := crowd.load.Journal().Progress()
	if open := waiting.Accepted - waiting.Completed - waiting.Failed; open <= dryJobs {
		return fmt.Errorf("%d submissions wait, expected more than the %d that would justify another pod", open, dryJobs)
	}
	if err := cluster.Hold(ctx, "no pod is added while the payer is empty", heldFor, func(ctx context.Context) (string, error) {
		d, err := f.deployment(ctx)
		if err != nil || *d.Spec.Replicas == 1 {
			return "", err
		}
		return fmt.Sprintf("the fleet was grown to %d", *d.Spec.Replicas), nil
	}); err != nil {
		return err
	}
	r.Saw("the fleet kept its one pod for %s; %s", heldFor, words(crowd.load.Journal().Progress()))
	if err := s.fund(ctx, r, f, moreFunds); err != nil {
		return err
	}
	progress := crowd.finish(cluster.Minutes(5))
	r.Saw("%s", words(progress))
	if err := s.closeDry(ctx, f, crowd); err != nil {
		return err
	}
	pool, err := f.get(ctx)
	if err != nil {
		return err
	}
	if err := s.Cluster.Client.Delete(ctx, pool); err != nil {
		return fmt.Errorf("delete RelayPool %s: %w", dryName, err)
	}
	r.Sum("1 pod for %s with %d waiting; once funded, %d of %d accepted were completed", heldFor, waiting.Accepted-waiting.Completed-waiting.Failed, progress.Completed, progress.Accepted)
	return nil
}

// closeDry holds that all that was accepted while the payer was empty came to its
// one true end.
func (s *suite) closeDry(ctx context.Context, f *fleet, crowd *traffic) error {
	keys, _, err := f.payers(ctx)
	if err != nil {
		return err
	}
	book := books.Fleet{Stage: s.stage, Name: dryName, Database: dryName, Payers: keys, Records: crowd.load.Journal().Records()}
	if err := book.AwaitQuiet(ctx); err != nil {
		return err
	}
	// A transfer pays no recipient, and this fleet's clients do not swap: these are
	// the claims that are about them.
	_, results, err := book.Close(ctx, "accepted-is-final", "told-is-true", "outcome-is-true", "one-spend", "nothing-unknown-signed", "lamports-accounted")
	if err != nil {
		return err
	}
	return verdict(results)
}
