package pool_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/relay/keyfile"
)

const (
	// other is a RelayPool that is edited during the test, and not checked.
	other = "other"

	// figuresInterval is the least time between two writes of figures.
	figuresInterval = time.Minute
	// startBalance is the first balance of every payer, and payment is what a payer of a
	// busy fleet pays in a round, both in lamports.
	startBalance = 10_000_000_000
	payment      = 700_000_000
	// minimum is the minimum balance of the fleets that become underfunded. Their first
	// payment takes the payers below it.
	minimum = startBalance - payment/2
)

// busyIP is the address of the pods of busy fleets. By the address, backlogs distinguishes
// them from idle fleets.
const busyIP = "127.0.0.2"

// Two hundred idle fleets are not written at all. Twenty busy fleets are written only in
// their status, and no more often than allowed: conditions at once, figures at most once a
// minute and only if a figure changed enough. Only the kubelet and the clock are stand-ins,
// and the test sets the clock forward. Under the race detector the fleets are fewer: see
// idlePools.
//
// The test does not run in parallel, because it counts the passes of all operators.
func TestSteadyStateWritesOnlyChangedStatuses(t *testing.T) { //nolint:paralleltest // see above
	f := newFleets(t)
	f.createAll(t)

	before, eventsBefore := f.idleVersions(t), f.idleEvents(t)
	f.traffic.Take()
	statesSince := f.recordStates(t)
	for round := range 3 {
		f.round(t, round)
	}
	states := statesSince()

	if diff := cmp.Diff(before, f.idleVersions(t)); diff != "" {
		t.Errorf("objects of idle fleets changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(eventsBefore, f.idleEvents(t)); diff != "" {
		t.Errorf("events of idle fleets changed (-before +after):\n%s", diff)
	}
	f.checkRequests(t)
	f.checkStatusWrites(t, states)
}

// fleets are the fleets of the test, with their operator.
type fleets struct {
	*pooltest.Stand
	clock    pooltest.Clock
	traffic  pooltest.Traffic
	backlogs backlogs
	kubelet  *pooltest.Kubelet
	restarts atomic.Int32
	// payers are the private keys of busy fleets' payers, by RelayPool.
	payers map[string]solana.PrivateKey
	// rounds counts the rounds in which the busy fleets' payers paid.
	rounds int

	mutex  sync.Mutex
	states map[string][]*v1alpha1.RelayPool // in the order of the watch
	// watchErr is why the watch may have missed a state.
	watchErr error
}

// backlogs answers for pods. The answers of busy fleets differ each time, and those of idle
// fleets differ too little to be shown.
type backlogs struct{ busyReads, idleReads atomic.Int64 }

func (b *backlogs) Backlog(_ context.Context, ip string) (pool.Backlog, error) {
	if ip != busyIP {
		return pool.Backlog{Due: 7 + b.idleReads.Add(1)%5}, nil
	}
	due := []int64{0, 40, 3, 5_000, 130}[b.busyReads.Add(1)%5]
	return pool.Backlog{Due: due, Held: map[string]int64{"payer_dry": due % 3}}, nil
}

func newFleets(t *testing.T) *fleets {
	t.Helper()
	f := &fleets{Stand: pooltest.NewStand(t, apiservertest.Config(t)), payers: map[string]solana.PrivateKey{}, states: map[string][]*v1alpha1.RelayPool{}}
	if err := f.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	f.watch(t)
	f.kubelet = pooltest.StartKubelet(t, f.Config, f.Namespace, pooltest.KubeletOptions{Fleet: f.podStatus})
	pooltest.StartOperator(t, f.Config, pooltest.OperatorOptions{
		Namespaces: []string{f.Namespace}, RefsInterval: time.Minute, Resync: time.Second, Workers: 8,
		Backlog: &f.backlogs, Now: f.clock.Now, Traffic: &f.traffic,
	})
	return f
}

// podStatus returns the status of a pod. Pods of busy fleets restart each round.
func (f *fleets) podStatus(pod *corev1.Pod) corev1.PodStatus {
	status := pooltest.Ready(pod)
	if strings.HasPrefix(pod.Labels[build.LabelPool], "busy-") {
		status.PodIP, status.PodIPs = busyIP, []corev1.PodIP{{IP: busyIP}}
		status.ContainerStatuses[0].RestartCount = f.restarts.Load()
	}
	return status
}

func poolNames() []string {
	all := []string{other}
	for i := range idlePools {
		all = append(all, fmt.Sprintf("idle-%03d", i))
	}
	for i := range busyPools {
		all = append(all, fmt.Sprintf("busy-%02d", i))
	}
	return all
}

// fallsBelowMinimum reports whether the fleet is a busy fleet whose payers fall below their
// minimum.
func fallsBelowMinimum(name string) bool {
	return strings.HasPrefix(name, "busy-") && strings.HasSuffix(name, "5")
}

// createAll makes the fleets and waits until each is ready and its status shows the
// figures.
func (f *fleets) createAll(t *testing.T) {
	t.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	todo := make(chan string)
	for range 8 {
		wg.Go(func() {
			for name := range todo {
				if err := f.Client.Create(t.Context(), f.Pool(name, func(p *v1alpha1.RelayPool) {
					p.Spec.Replicas = ptr.To[int32](1)
					if fallsBelowMinimum(name) {
						p.Spec.FeePayers.MinimumBalanceLamports, p.Spec.FeePayers.TargetBalanceLamports = ptr.To[int64](minimum), ptr.To[int64](startBalance)
					}
				})); err != nil {
					t.Errorf("create RelayPool %s: %v", name, err)
				}
			}
		})
	}
	for _, name := range poolNames() {
		todo <- name
	}
	close(todo)
	wg.Wait()
	funded := map[string]bool{}
	f.eventually(t, "the payers of all fleets are known, and get their funds", func(p *v1alpha1.RelayPool) error {
		if len(p.Status.FeePayers) == 0 {
			return errors.New("no fee payer")
		}
		if address := p.Status.FeePayers[0].Address; !funded[address] {
			funded[address] = true
			return f.Chain.Fund(solana.MustPublicKeyFromBase58(address), startBalance)
		}
		return nil
	})
	f.eventually(t, "all fleets are ready", func(p *v1alpha1.RelayPool) error {
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("Ready is %+v", c)
		}
		return nil
	})
	t.Logf("%d fleets were ready after %s", len(poolNames()), time.Since(began).Round(time.Second))
	f.advance(t, figuresInterval+time.Second)
	f.eventually(t, "all fleets show their figures", func(p *v1alpha1.RelayPool) error {
		if p.Status.Backlog == nil || p.Status.NextIndex == nil || p.Status.FeePayers[0].BalanceLamports == nil || *p.Status.FeePayers[0].BalanceLamports != startBalance {
			return errors.New("a figure is missing or old")
		}
		return nil
	})
	for _, name := range poolNames() {
		if strings.HasPrefix(name, "busy-") {
			f.payers[name] = f.privateKey(t, name)
		}
	}
	// The advance of the clock may make writes for idle fleets due. Afterwards they have all
	// happened.
	f.advance(t, figuresInterval+time.Second)
	f.awaitPasses(t, 2)
	f.traffic.Take()
}

// eventually waits until a check passes for every RelayPool's last state. It goes on for as long as the
// check passes for more and more of them, because on a slow machine all together take long.
func (f *fleets) eventually(t *testing.T, what string, check func(*v1alpha1.RelayPool) error) {
	t.Helper()
	for least := len(poolNames()); least > 0; {
		pooltest.Eventually(t, what, func() error {
			wrong, example := f.countWrong(check)
			if wrong > 0 && wrong >= least {
				return fmt.Errorf("not true for %d RelayPools, such as %w", wrong, example)
			}
			least = wrong
			return nil
		})
	}
}

// countWrong counts the RelayPools that the check fails for, or that do not exist yet.
func (f *fleets) countWrong(check func(*v1alpha1.RelayPool) error) (wrong int, example error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.states) > len(poolNames()) {
		return len(f.states), fmt.Errorf("there are %d RelayPools, want %d", len(f.states), len(poolNames()))
	}
	for _, name := range poolNames() {
		all := f.states[name]
		if len(all) == 0 {
			wrong, example = wrong+1, fmt.Errorf("%s: does not exist", name)
		} else if err := check(all[len(all)-1]); err != nil {
			wrong, example = wrong+1, fmt.Errorf("%s: %w", name, err)
		}
	}
	return wrong, example
}

func (f *fleets) privateKey(t *testing.T, name string) solana.PrivateKey {
	t.Helper()
	var secret corev1.Secret
	f.Get(t, keys.SecretName(name, 0, 0), &secret)
	key, err := keyfile.Parse(secret.Data[keys.DataKey])
	if err != nil {
		t.Fatal(err)
	}
	return solana.PrivateKey(key)
}

// advance sets the clock forward. It waits until the chain was read for every fleet, the
// backlog of every busy fleet was read, and passes were made.
func (f *fleets) advance(t *testing.T, by time.Duration) {
	t.Helper()
	polls, checks := f.backlogs.busyReads.Load(), f.Chain.Stats()["getMultipleAccounts"]
	f.clock.Advance(by)
	// The chain watcher's timer still runs to the old time of the next check. A change of a
	// RelayPool's spec wakes the watcher.
	f.awaitWatch(t)
	pooltest.Eventually(t, "all chains are read, and all backlogs", func() error {
		chains, backlogs := f.Chain.Stats()["getMultipleAccounts"]-checks, f.backlogs.busyReads.Load()-polls
		if chains < uint64(len(poolNames())) || backlogs < busyPools {
			return fmt.Errorf("%d chains and %d backlogs were read", chains, backlogs)
		}
		return nil
	})
	f.awaitPasses(t, 1)
}

// awaitPasses waits for enough passes to reconcile every fleet that many times.
func (f *fleets) awaitPasses(t *testing.T, times int) {
	t.Helper()
	from := passesMade(t)
	pooltest.Eventually(t, "passes are made", func() error {
		if made := passesMade(t) - from; made < float64(times*len(poolNames())) {
			return fmt.Errorf("%v passes were made", made)
		}
		return nil
	})
}

// passesMade counts the passes of all operators in this process.
func passesMade(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	made := 0.0
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_total" {
			for _, m := range family.GetMetric() {
				made += m.GetCounter().GetValue()
			}
		}
	}
	return made
}

// round makes the busy fleets' payers pay and their pods restart. Half a minute later, the
// statuses must show which payers lack funds. Another half minute later, they must show all
// figures.
func (f *fleets) round(t *testing.T, n int) {
	t.Helper()
	for name, payer := range f.payers {
		f.pay(t, name, payer)
	}
	// If the next reading missed a payment, the status would show the payment a minute later.
	f.rounds++
	left := uint64(startBalance - f.rounds*payment)
	for name, payer := range f.payers {
		pooltest.Eventually(t, "the payment of "+name+" is confirmed", func() error {
			balance, err := rpc.New(f.RPC).GetBalance(t.Context(), payer.PublicKey(), rpc.CommitmentConfirmed)
			if err == nil && balance.Value > left {
				err = fmt.Errorf("the balance is %d", balance.Value)
			}
			return err
		})
	}
	f.restarts.Add(1)
	f.advance(t, figuresInterval/2+time.Second)
	if n == 0 {
		f.eventually(t, "conditions show the lack of funds at once", func(p *v1alpha1.RelayPool) error {
			funded := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionFeePayersFunded)
			if fallsBelowMinimum(p.Name) != (funded.Status == metav1.ConditionFalse) {
				return fmt.Errorf("%s/%s", funded.Status, funded.Reason)
			}
			return nil
		})
	}
	f.restarts.Add(1)
	f.advance(t, figuresInterval/2+time.Second)
	f.eventually(t, "statuses show the payments of busy fleets after a minute", func(p *v1alpha1.RelayPool) error {
		got := *p.Status.FeePayers[0].BalanceLamports
		if strings.HasPrefix(p.Name, "busy-") && uint64(got) > left {
			return fmt.Errorf("the balance is %d, want at most %d", got, left)
		}
		return nil
	})
}

// pay sends lamports from a payer.
func (f *fleets) pay(t *testing.T, name string, payer solana.PrivateKey) {
	t.Helper()
	chain := rpc.New(f.RPC)
	latest, err := chain.GetLatestBlockhash(t.Context(), rpc.CommitmentProcessed)
	if err != nil {
		t.Fatal(err)
	}
	from, to := payer.PublicKey(), solana.PublicKey{1, 2, 3}
	tx, err := solana.NewTransaction([]solana.Instruction{system.NewTransferInstruction(payment, from, to).Build()},
		latest.Value.Blockhash, solana.TransactionPayer(from))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &payer }); err != nil {
		t.Fatal(err)
	}
	if _, err := chain.SendTransactionWithOpts(t.Context(), tx, rpc.TransactionOpts{SkipPreflight: true}); err != nil {
		t.Fatalf("send the payment of %s: %v", name, err)
	}
}

// idleVersions returns the resource versions of all objects of idle fleets.
func (f *fleets) idleVersions(t *testing.T) map[string]string {
	t.Helper()
	all := versions(t, f.Stand)
	maps.DeleteFunc(all, func(name, _ string) bool { return !strings.Contains(name, " idle-") })
	// RelayPool, Deployment, ReplicaSet, Pod, ConfigMap, Secret, Service,
	// ServiceAccount and PodDisruptionBudget of each.
	if want := idlePools * 9; len(all) != want {
		t.Fatalf("there are %d objects of idle fleets, want %d", len(all), want)
	}
	return all
}

func (f *fleets) idleEvents(t *testing.T) map[string]string {
	t.Helper()
	var list eventsv1.EventList
	if err := f.Client.List(t.Context(), &list, client.InNamespace(f.Namespace)); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.Kind == v1alpha1.Kind && strings.HasPrefix(e.Regarding.Name, "idle-") {
			out[e.Name] = e.ResourceVersion + " " + e.Reason
		}
	}
	return out
}

// watch records every state of every RelayPool from now on. Listing two hundred RelayPools
// again and again would keep the API server busy.
func (f *fleets) watch(t *testing.T) {
	t.Helper()
	watchClient, err := client.NewWithWatch(f.Config, client.Options{Scheme: f.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w, err := watchClient.Watch(t.Context(), &v1alpha1.RelayPoolList{}, client.InNamespace(f.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for e := range w.ResultChan() {
			f.mutex.Lock()
			if p, ok := e.Object.(*v1alpha1.RelayPool); ok && (e.Type == watch.Added || e.Type == watch.Modified) {
				f.states[p.Name] = append(f.states[p.Name], p)
			} else if t.Context().Err() == nil {
				f.watchErr = fmt.Errorf("%s %+v", e.Type, e.Object)
			}
			f.mutex.Unlock()
		}
	})
	t.Cleanup(func() { w.Stop(); watcher.Wait() })
}

// recordStates returns a function that returns the states of each RelayPool from now on. The
// present state is the first.
func (f *fleets) recordStates(t *testing.T) func() map[string][]*v1alpha1.RelayPool {
	t.Helper()
	f.awaitWatch(t)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	from := map[string]int{}
	for name, all := range f.states {
		from[name] = len(all) - 1
	}
	return func() map[string][]*v1alpha1.RelayPool {
		f.awaitWatch(t)
		f.mutex.Lock()
		defer f.mutex.Unlock()
		states := map[string][]*v1alpha1.RelayPool{}
		for name, all := range f.states {
			states[name] = slices.Clone(all[from[name]:])
		}
		return states
	}
}

// awaitWatch makes a change and waits until the watch has delivered it. Then the watch has
// also delivered all earlier changes.
func (f *fleets) awaitWatch(t *testing.T) {
	t.Helper()
	var p v1alpha1.RelayPool
	pooltest.Change(t, f.Stand, other, &p, func(p *v1alpha1.RelayPool) {
		p.Spec.Pool.CheckIntervalSeconds = 10 + (p.Spec.Pool.CheckIntervalSeconds+1)%50
	})
	pooltest.Eventually(t, "the watch has caught up", func() error {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		if f.watchErr != nil {
			t.Fatalf("watch RelayPools: %v", f.watchErr)
		}
		if !slices.ContainsFunc(f.states[other], func(seen *v1alpha1.RelayPool) bool { return seen.ResourceVersion == p.ResourceVersion }) {
			return errors.New("the change was not delivered")
		}
		return nil
	})
}

// checkRequests checks that the operator wrote only the status of busy fleets. It checks the
// requests, because a write that changes nothing leaves no trace in an object.
func (f *fleets) checkRequests(t *testing.T) {
	t.Helper()
	wrong, reads := map[string]int{}, map[string]int{}
	for _, r := range f.traffic.Take() {
		switch {
		case r.Name == other:
		case !r.Writes():
			reads[strings.SplitN(r.Name, "-", 2)[0]+" "+r.Resource]++
		case r.Resource == "relaypools/status" && strings.HasPrefix(r.Name, "busy-"):
		default:
			wrong[r.String()]++
		}
	}
	if len(wrong) > 0 {
		t.Errorf("the operator wrote more than the statuses of busy fleets: %v", wrong)
	}
	t.Logf("reads: %v", reads)
}

// checkStatusWrites compares consecutive states of busy fleets, and checks that each write
// of a status was allowed.
func (f *fleets) checkStatusWrites(t *testing.T, states map[string][]*v1alpha1.RelayPool) {
	t.Helper()
	busy, conditions, figures := 0, 0, 0
	for name, all := range states {
		if !strings.HasPrefix(name, "busy-") {
			continue
		}
		busy++
		if len(all)-1 < f.rounds-1 {
			t.Errorf("%s: %d writes in %d rounds, want at least one for each round but the last", name, len(all)-1, f.rounds)
		}
		for i := range all[1:] {
			was, is := all[i], all[i+1]
			if !equality.Semantic.DeepEqual(was.Spec, is.Spec) || !equality.Semantic.DeepEqual(was.Labels, is.Labels) || was.Generation != is.Generation {
				t.Errorf("%s: more than the status was written", name)
			}
			switch {
			case !equality.Semantic.DeepEqual(withoutFigures(was), withoutFigures(is)):
				conditions++
			default:
				figures++
				if err := writeNotAllowed(was, is); err != nil {
					t.Errorf("%s: figures were written, which is not allowed: %v", name, err)
				}
			}
		}
	}
	if busy != busyPools || conditions == 0 || figures < busyPools {
		t.Errorf("%d busy fleets, %d writes of conditions and %d of figures alone: the test checked too little", busy, conditions, figures)
	}
	t.Logf("%d busy fleets in %d rounds: %d writes of conditions, %d of figures alone", busy, f.rounds, conditions, figures)
}

func withoutFigures(p *v1alpha1.RelayPool) v1alpha1.RelayPoolStatus {
	s := *p.Status.DeepCopy()
	s.ObservedAt, s.NextIndex, s.Backlog = nil, nil, nil
	for i := range s.FeePayers {
		s.FeePayers[i].BalanceLamports, s.FeePayers[i].RunwayHours = nil, nil
	}
	return s
}

// writeNotAllowed returns why a write of figures alone was not allowed, or nil. It follows
// the resource's documentation, and not the operator's code.
func writeNotAllowed(was, is *v1alpha1.RelayPool) error {
	// Times in a status have whole seconds.
	if since := is.Status.ObservedAt.Sub(was.Status.ObservedAt.Time); since < figuresInterval-time.Second {
		return fmt.Errorf("the last write was only %s earlier", since)
	}
	changed := func(a, b *int64, part, least float64) bool {
		if a == nil || b == nil {
			return (a == nil) != (b == nil)
		}
		return math.Abs(float64(*a-*b)) >= max(least, float64(*a)*part)
	}
	backlogChanged := func(a, b int64) bool { return a != b && (a == 0 || b == 0 || a >= 2*b || b >= 2*a) }
	payers := slices.ContainsFunc(is.Status.FeePayers, func(p v1alpha1.FeePayerStatus) bool {
		last := was.Status.FeePayers[0]
		return changed(last.BalanceLamports, p.BalanceLamports, 0.05, 1) || changed(last.RunwayHours, p.RunwayHours, 0.20, 1)
	})
	if payers || changed(was.Status.NextIndex, is.Status.NextIndex, 0.01, 64) || backlogChanged(*was.Status.Backlog, *is.Status.Backlog) {
		return nil
	}
	return fmt.Errorf("no figure has changed enough: %s", cmp.Diff(was.Status, is.Status))
}
