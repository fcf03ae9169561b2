package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/openapi"
)

const (
	// dryFunds pay for six transactions above the minimum.
	dryFunds = 62_000_000
	// moreFunds are sent once the payer is empty.
	moreFunds = 50 * solana.LAMPORTS_PER_SOL
	// burstRate fills a queue of four times limitedSubmissions in a moment. Without the limit
	// such a backlog would need more pods. limitedConcurrency is so small that the queue grows
	// even on a slow machine.
	burstRate, limitedSubmissions, limitedConcurrency = 60, 4, 1
	// heldFor is how long the fleet has to keep its size: by default the autoscaler checks
	// every 15 s, with readings that are made every 10 s.
	heldFor = 45 * time.Second
)

// limit is a cause for which a fleet of any size holds its queue.
type limit struct {
	reason string
	// funds are the payer's lamports.
	funds uint64
	// set starts the limit while clients submit, and lift ends the limit.
	set, lift func()
}

// dry lets a second fleet run out of lamports while submissions wait in its queue.
func (s *suite) dry(t *testing.T) {
	f := s.newFleet("dry")
	f.holdQueue(t, s.relayPool(f.name, maxReplicas, limitedSubmissions), limit{
		reason: "fee_payer_empty", funds: dryFunds,
		set:  func() {},
		lift: func() { f.fund(t, moreFunds) },
	})
}

// narrow uses up the request limit of another fleet's only RPC endpoint.
func (s *suite) narrow(t *testing.T) {
	f := s.newFleet("narrow")
	pool := s.relayPool(f.name, maxReplicas, limitedSubmissions)
	pool.Spec.Solana.Endpoints = []v1alpha1.Endpoint{{Name: "narrow", URL: s.stage.narrowURL()}}
	pool.Spec.NetworkPolicy.RPC = append(pool.Spec.NetworkPolicy.RPC, v1alpha1.Destination{CIDR: "0.0.0.0/0", Port: narrowPort})
	f.holdQueue(t, pool, limit{
		reason: "chain_unavailable", funds: moreFunds,
		set:  func() { ok(t, s.stage.narrow(s.ctx, true)) },
		lift: func() { ok(t, s.stage.narrow(s.ctx, false)) },
	})
}

// holdQueue makes a fleet accept more submissions than the limit lets through, and checks
// that the fleet keeps its size until the limit is lifted. It adds the autoscaler once the
// queue is held: before that, adding pods would be right.
func (f *fleet) holdQueue(t *testing.T, pool *v1alpha1.RelayPool, l limit) {
	f.makeDatabase(t, f.name)
	autoscaling := pool.Spec.Autoscaling
	pool.Spec.Replicas, pool.Spec.Autoscaling, pool.Spec.Concurrency = new(int32(1)), nil, limitedConcurrency
	ok(t, f.kube.Create(f.ctx, pool))
	f.fund(t, l.funds)
	f.awaitCondition(t, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	clients := f.newTraffic(t, f.name, burstRate, 0, f.seed+1)
	defer clients.abandon()
	held := f.awaitHeld(t, l, clients)
	f.log(t, "%d submissions are held (%s), and none is due", held, l.reason)
	f.change(t, func(spec *v1alpha1.RelayPoolSpec) { spec.Replicas, spec.Autoscaling = nil, autoscaling })
	message := f.awaitCondition(t, v1alpha1.ConditionAutoscalingActive, metav1.ConditionTrue, v1alpha1.ReasonLimited)
	if !strings.Contains(message, l.reason) {
		t.Fatalf("AutoscalingActive does not give the reason %s: %s", l.reason, message)
	}
	f.log(t, "AutoscalingActive=True Limited: %s", message)
	ok(t, checkNever(f.ctx, "a pod is added while the queue is held", heldFor, func(ctx context.Context) (string, error) {
		d, err := f.deployment(ctx)
		if err == nil && *d.Spec.Replicas != 1 {
			return fmt.Sprintf("the fleet was grown to %d", *d.Spec.Replicas), nil
		}
		return "", err
	}))
	f.log(t, "the fleet kept its one pod for %s; %s", heldFor, clients)
	l.lift()
	clients.finish(5 * time.Minute)
	f.log(t, "%s", clients)
	f.accountFor(t, clients.Journal().Records())
	ok(t, f.kube.Delete(f.ctx, pool))
}

// awaitHeld waits until enough submissions wait for the limit, and returns the number that
// the fleet reports as held.
func (f *fleet) awaitHeld(t *testing.T, l limit, clients *traffic) (held int64) {
	t.Helper()
	f.await(t, "a queue has formed", 2*time.Minute, func(context.Context) error {
		if p := clients.progress(); p.Accepted-p.Completed-p.Failed <= 4*limitedSubmissions {
			return errors.New(clients.String())
		}
		return nil
	})
	l.set()
	clients.stop()
	api, err := openapi.NewClientWithResponses(f.stage.fleetURL(f.name), openapi.WithHTTPClient(f.stage.HTTP))
	ok(t, err)
	f.await(t, "the whole queue is held", 3*time.Minute, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		answer, err := api.GetBacklogWithResponse(ctx)
		if err != nil {
			return err
		}
		b := answer.JSON200
		if b == nil {
			return errors.New("GET /backlog answers " + answer.Status())
		}
		if held = b.Held[l.reason]; b.DueCount > 0 || held <= limitedSubmissions {
			return fmt.Errorf("%d submissions are due and %v are held", b.DueCount, b.Held)
		}
		return nil
	})
	return held
}

// accountFor checks that every accepted submission in the clients' journal has one outcome, which the chain confirms. The others
// are fleets with the same database.
func (f *fleet) accountFor(t *testing.T, records []load.Record, others ...*fleet) {
	t.Helper()
	f.others = append(f.others, records...)
	f.awaitFinal(t)
	f.awaitMetrics(t)
	e := f.gather(t, records, others...)
	// The other claims cannot be checked for this fleet alone: they need swaps, or examine
	// the swaps of the other fleet.
	ok(t, verdict(results(e, "accepted-is-final", "answers-are-true", "outcome-is-true", "one-spend", "nothing-unknown-signed", "lamports-accounted")))
}
