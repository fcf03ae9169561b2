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
	"github.com/relaypool/relaypool/hack/e2e/stage"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/openapi"
)

const (
	dryName, narrowName = "dry", "narrow"
	// dryFunds pay for six transactions above the minimum.
	dryFunds = 62_000_000
	// moreFunds are sent once the payer is empty.
	moreFunds = 50 * solana.LAMPORTS_PER_SOL
	// burstRate accepts more in a moment than the queue that is wanted, four times
	// limitedJobs: what dryFunds do not pay for would call for more pods, were it a
	// backlog. limitedConcurrency is so small that the queue grows on a machine that
	// is slow with everything, too.
	burstRate, limitedJobs, limitedConcurrency = 60, 4, 1
	// heldFor is how long the fleet has to keep its size: the autoscaler looks every
	// 15 s by default, at readings that are made every 10 s.
	heldFor = 45 * time.Second
)

// limit is something that holds a fleet's queue, whatever its size.
type limit struct {
	name, reason string
	// change edits the RelayPool before it is made, funds are its payer's.
	change func(*v1alpha1.RelayPool)
	funds  uint64
	// set brings the limit about while submissions come in, lift ends it.
	set, lift func(context.Context) error
}

// dry lets a second fleet run out of lamports with a queue.
func (s *suite) dry(ctx context.Context, r *report.Scenario) error {
	f := &fleet{s.Cluster, dryName}
	return s.limited(ctx, r, f, limit{
		name: "the payer is empty", reason: "fee_payer_empty", funds: dryFunds,
		change: func(*v1alpha1.RelayPool) {},
		set:    func(context.Context) error { return nil },
		lift:   func(ctx context.Context) error { return s.fund(ctx, r, f, moreFunds) },
	})
}

// narrow uses the plan of another fleet's only RPC endpoint up.
func (s *suite) narrow(ctx context.Context, r *report.Scenario) error {
	return s.limited(ctx, r, &fleet{s.Cluster, narrowName}, limit{
		name: "the RPC's plan is used up", reason: "chain_unavailable", funds: moreFunds,
		change: func(pool *v1alpha1.RelayPool) {
			pool.Spec.Solana.Endpoints = []v1alpha1.Endpoint{{Name: "narrow", URL: s.stage.NarrowURL()}}
			pool.Spec.NetworkPolicy.RPC = append(pool.Spec.NetworkPolicy.RPC, v1alpha1.Destination{CIDR: "0.0.0.0/0", Port: stage.NarrowPort})
		},
		set:  func(ctx context.Context) error { return s.stage.Narrow(ctx, true) },
		lift: func(ctx context.Context) error { return s.stage.Narrow(ctx, false) },
	})
}

// limited has a fleet of its own accept more than the limit lets through, and
// holds that it keeps its size until the limit is lifted. The autoscaler comes
// when the queue is held already: before, it would be right to add pods.
func (s *suite) limited(ctx context.Context, r *report.Scenario, f *fleet, l limit) error {
	if err := s.makeLimited(ctx, r, f, l); err != nil {
		return err
	}
	crowd, err := s.begin(ctx, crowd{fleet: f.name, rate: burstRate, seed: s.Seed + 1})
	if err != nil {
		return err
	}
	defer crowd.abandon()
	held, err := s.queue(ctx, f, l, crowd)
	if err != nil {
		return err
	}
	r.Saw("%s: %d submissions are held (%s), and none is due", f.name, held, l.reason)
	if err := f.change(ctx, func(spec *v1alpha1.RelayPoolSpec) {
		spec.Replicas, spec.Autoscaling = nil, &v1alpha1.Autoscaling{MinReplicas: 1, MaxReplicas: mostReplicas, JobsPerReplica: limitedJobs}
	}); err != nil {
		return fmt.Errorf("turn autoscaling of RelayPool %s on: %w", f.name, err)
	}
	message, err := f.condition(ctx, v1alpha1.ConditionAutoscalingActive, metav1.ConditionTrue, v1alpha1.ReasonLimited)
	if err != nil {
		return err
	}
	if !strings.Contains(message, l.reason) {
		return fmt.Errorf("AutoscalingActive does not give the reason %s: %s", l.reason, message)
	}
	r.Saw("%s: AutoscalingActive=True Limited: %s", f.name, message)
	if err := cluster.Hold(ctx, "no pod is added while "+l.name, heldFor, func(ctx context.Context) (string, error) {
		d, err := f.deployment(ctx)
		if err != nil || *d.Spec.Replicas == 1 {
			return "", err
		}
		return fmt.Sprintf("the fleet was grown to %d", *d.Spec.Replicas), nil
	}); err != nil {
		return err
	}
	r.Saw("%s: the fleet kept its one pod for %s; %s", f.name, heldFor, words(crowd.load.Journal().Progress()))
	if err := l.lift(ctx); err != nil {
		return err
	}
	progress := crowd.finish(cluster.Minutes(5))
	r.Saw("%s: %s", f.name, words(progress))
	r.Sum("1 pod for %s with %d held; afterwards all %d that were accepted had their true outcome", heldFor, held, progress.Accepted)
	return s.closeLimited(ctx, f, crowd)
}

// queue lets submissions come until enough wait for the limit, and gives how many
// the fleet says that it holds.
func (s *suite) queue(ctx context.Context, f *fleet, l limit, crowd *traffic) (held int64, err error) {
	if err := cluster.Await(ctx, "a queue is there", cluster.Minutes(2), func(context.Context) (string, error) {
		if p := crowd.load.Journal().Progress(); open(p) <= 4*limitedJobs {
			return words(p), nil
		}
		return "", nil
	}); err != nil {
		return 0, err
	}
	if err := l.set(ctx); err != nil {
		return 0, err
	}
	crowd.stop()
	client, err := openapi.NewClientWithResponses(s.stage.FleetURL(f.name), openapi.WithHTTPClient(s.stage.HTTP))
	if err != nil {
		return 0, err
	}
	err = cluster.Await(ctx, "the whole queue is held", cluster.Minutes(3), func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		answer, err := client.GetBacklogWithResponse(ctx)
		if err != nil {
			return "", err
		}
		b := answer.JSON200
		if b == nil {
			return "GET /backlog answers " + answer.Status(), nil
		}
		if held = b.Held[l.reason]; b.DueCount > 0 || held <= limitedJobs {
			return fmt.Sprintf("%d are due and %v are held", b.DueCount, b.Held), nil
		}
		return "", nil
	})
	return held, err
}

// answerWithin bounds a question to a fleet.
const answerWithin = 20 * time.Second

// open counts the submissions without an outcome.
func open(p load.Progress) int { return p.Accepted - p.Completed - p.Failed }

func (s *suite) makeLimited(ctx context.Context, r *report.Scenario, f *fleet, l limit) error {
	if err := s.stage.MakeDatabase(ctx, f.name, f.name+"-database"); err != nil {
		return err
	}
	pool, one := s.pool(f.name, mostReplicas, limitedJobs), int32(1)
	pool.Spec.Replicas, pool.Spec.Autoscaling, pool.Spec.Concurrency = &one, nil, limitedConcurrency
	l.change(pool)
	if err := s.Cluster.Client.Create(ctx, pool); err != nil {
		return fmt.Errorf("make RelayPool %s: %w", f.name, err)
	}
	if err := s.fund(ctx, r, f, l.funds); err != nil {
		return err
	}
	_, err := f.condition(ctx, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	return err
}

// closeLimited holds that all that was accepted meanwhile came to its one true
// end, and takes the fleet away.
func (s *suite) closeLimited(ctx context.Context, f *fleet, crowd *traffic) error {
	keys, _, err := f.payers(ctx)
	if err != nil {
		return err
	}
	book := books.Fleet{Stage: s.stage, Name: f.name, Database: f.name, Payers: keys, Records: crowd.load.Journal().Records()}
	s.others = append(s.others, book.Records...)
	if err := book.AwaitQuiet(ctx); err != nil {
		return err
	}
	if err := s.allMetrics(ctx, f); err != nil {
		return err
	}
	// This fleet's clients do not swap, and another fleet's do: these are the claims
	// that are about its own.
	_, results, err := book.Close(ctx, "accepted-is-final", "told-is-true", "outcome-is-true", "one-spend", "nothing-unknown-signed", "lamports-accounted")
	if err != nil {
		return err
	}
	if err := verdict(results); err != nil {
		return err
	}
	pool, err := f.get(ctx)
	if err != nil {
		return err
	}
	if err := s.Cluster.Client.Delete(ctx, pool); err != nil {
		return fmt.Errorf("delete RelayPool %s: %w", f.name, err)
	}
	return nil
}
