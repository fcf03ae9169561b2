package pool

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

// payerC is the address of generatedKey.
func payerC() solana.PublicKey { return solana.PublicKey{3} }

// generatedKey returns a key that was generated for the fleet in the fixtures.
func generatedKey(state v1alpha1.FeePayerState) keys.Key {
	return keys.Key{
		Secret: keys.SecretName("demo", 0, 0), UID: "key-uid", ResourceVersion: "1", Created: now().Add(-time.Hour),
		Address: payerC().String(), State: state,
	}
}

// When the spec names Secrets, a generated key is unused, and the status does not show it
// while it is empty. If only shown keys were read, its balance would be unknown. So the
// key would be shown, its balance read, and the key hidden again, with a write and a call
// to the chain each time.
func TestReadPayersDoNotDependOnTheStatus(t *testing.T) {
	t.Parallel()
	for name, lamports := range map[string]uint64{"an empty key": 0, "a key with dust": 5000, "a funded key": 3_000_000_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthyFacts()
			f.Keys.Keys = []keys.Key{generatedKey(v1alpha1.PayerActive)}
			balances := map[solana.PublicKey]uint64{payerA(): 1_000_000_000, payerB(): 2_000_000_000, payerC(): lamports}
			var queries []chainwatch.Query
			for range 6 {
				p := Decide(f, settings())
				queries = append(queries, p.Query)
				f.Pool.Status = Report(f, &p, &Outcome{Applied: true})
				// The watcher returns only the requested balances.
				f.Now = f.Now.Add(time.Minute)
				f.Chain.Payers = map[solana.PublicKey]chainwatch.Payer{}
				for _, payer := range p.Query.Payers {
					f.Chain.Payers[payer] = chainwatch.Payer{Lamports: balances[payer], At: f.Now}
				}
			}
			for i, q := range queries[1:] {
				if diff := cmp.Diff(queries[i].Payers, q.Payers); diff != "" {
					t.Fatalf("the query of pass %d has other payers than the query before (-before +after):\n%s", i+1, diff)
				}
			}
			want := 2
			if lamports > 1_000_000 {
				want = 3
			}
			if got := len(f.Pool.Status.FeePayers); got != want {
				t.Errorf("the status shows %d payers, want %d", got, want)
			}
		})
	}
}

// A balance that was read before the key was swept does not raise an alarm about funds.
func TestBalanceReadBeforeASweepRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	f := healthyFacts()
	f.Pool.Spec.FeePayers = v1alpha1.FeePayers{Generate: &v1alpha1.GeneratedKeys{Count: 1}, Rotation: &v1alpha1.Rotation{Revision: 1}}
	f.References.Payers = nil
	active := generatedKey(v1alpha1.PayerActive)
	active.Revision, active.Secret, active.Address = 1, keys.SecretName("demo", 1, 0), payerA().String()
	f.Keys.Keys = []keys.Key{generatedKey(v1alpha1.PayerRetired), active}
	done := metav1.NewTime(now().Add(-10 * time.Second))
	f.Pool.Status.Rotation = &v1alpha1.RotationStatus{Revision: 1, Step: v1alpha1.RotationDone, Since: &done}
	for name, test := range map[string]struct {
		readAt     time.Time
		wantReason string
	}{
		"read before the rotation was done": {done.Add(-time.Minute), v1alpha1.ReasonFunded},
		"read after the rotation was done":  {done.Add(5 * time.Second), v1alpha1.ReasonRetiredKeyFunded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := *f
			f.Chain.Payers = map[solana.PublicKey]chainwatch.Payer{
				payerA(): {Lamports: 1_000_000_000, At: test.readAt}, payerC(): {Lamports: 900_000_000, At: test.readAt},
			}
			p := Decide(&f, settings())
			if got := feePayersFunded(&f, &p).reason; got != test.wantReason {
				t.Errorf("FeePayersFunded has the reason %s, want %s", got, test.wantReason)
			}
		})
	}
}

// While the spec is invalid nothing is written, so an earlier pass would change
// nothing.
func TestAnInvalidSpecIsNotRequeuedSooner(t *testing.T) {
	t.Parallel()
	f := healthyFacts()
	f.Pool.Spec.FeePayers = v1alpha1.FeePayers{Generate: &v1alpha1.GeneratedKeys{Count: 1}}
	f.Pool.Spec.Template.Labels = map[string]string{"no label": "x"}
	f.References.Payers, f.Keys.Keys = nil, nil
	f.References.Next, f.Keys.Next = now().Add(time.Hour), now().Add(time.Hour)
	p := Decide(f, settings())
	if !p.Keys.Writes() || len(p.Faults) == 0 {
		t.Fatalf("the plan makes keys: %t, faults %q; want a key to be made, and a fault", p.Keys.Writes(), p.Faults)
	}
	r := &Reconciler{Options: Options{Random: func() float64 { return 0.5 }}}
	f.Pool.Status.ObservedAt = ptr.To(metav1.NewTime(now()))
	status := f.Pool.Status
	if got := r.requeueAfter(f, &p, &Outcome{}, &status); got < time.Minute {
		t.Errorf("the next pass is due after %s, want at least a minute", got)
	}
}

// queryRecorder records the queries that the watcher gets.
type queryRecorder struct {
	fixedReadings
	set []chainwatch.Query
}

func (q *queryRecorder) Set(_ types.NamespacedName, query chainwatch.Query) {
	q.set = append(q.set, query)
}

// While the keys cannot be read, the query has no payers. If the watcher got this query, it
// would drop the payers' balances of the last hour, from which it computes their spending.
func TestBalancesAreKeptWhileTheKeysCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Facts)
		want   int
	}{
		"the keys were read":                              {func(*Facts) {}, 1},
		"the keys were not read":                          {func(f *Facts) { f.KeysKnown = false }, 0},
		"the keys were not read, and no balance is known": {func(f *Facts) { f.KeysKnown, f.Chain = false, chainwatch.Reading{} }, 1},
		"there is no endpoint to read from":               {func(f *Facts) { f.Target.Query.Endpoints = nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, watcher := healthyFacts(), new(queryRecorder)
			test.change(f)
			p := Decide(f, settings())
			(&Reconciler{Options: Options{Watcher: watcher}}).watch(f, &p)
			if len(watcher.set) != test.want {
				t.Errorf("the watcher got %d queries, want %d", len(watcher.set), test.want)
			}
		})
	}
}
