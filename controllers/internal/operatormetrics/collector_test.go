package operatormetrics_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/operatormetrics"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	first  = "4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T"
	second = "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin"
)

func now() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// unix returns the value of a sample: the time that many seconds after now.
func unix(after int64) string { return strconv.FormatInt(now().Unix()+after, 10) }

type readings map[types.NamespacedName]chainwatch.Reading

func (r readings) Reading(key types.NamespacedName) (chainwatch.Reading, bool) {
	reading, ok := r[key]
	return reading, ok
}

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "the message is no label"}
}

// pools returns three RelayPools: a healthy one that rotates and has two payers, one that
// was just made and is paused, and one whose chain is unreachable.
func pools() []v1alpha1.RelayPool {
	since := metav1.NewTime(now().Add(-90 * time.Second))
	return []v1alpha1.RelayPool{
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "well"},
			Status: v1alpha1.RelayPoolStatus{
				Conditions: []metav1.Condition{
					condition(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonValid),
					condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady),
					condition(v1alpha1.ConditionReconciling, metav1.ConditionTrue, v1alpha1.ReasonRotating),
				},
				FeePayers: []v1alpha1.FeePayerStatus{
					{Address: first, State: v1alpha1.PayerActive}, {Address: second, State: v1alpha1.PayerRetired},
					{Address: "not an address", State: v1alpha1.PayerRetired},
				},
				Rotation: &v1alpha1.RotationStatus{Revision: 2, Step: v1alpha1.RotationDrain, Since: &since},
			},
		},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "new"}, Spec: v1alpha1.RelayPoolSpec{Paused: true}},
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "lost"},
			Status: v1alpha1.RelayPoolStatus{
				Conditions: []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonChainUnavailable)},
				Rotation:   &v1alpha1.RotationStatus{Revision: 2, Step: v1alpha1.RotationDone, Since: &since},
			},
		},
	}
}

func knownReadings() readings {
	return readings{
		{Namespace: "a", Name: "well"}: {
			At: now().Add(-12 * time.Second),
			Payers: map[solana.PublicKey]chainwatch.Payer{
				solana.MustPublicKeyFromBase58(first): {Lamports: 1_500_000_000, At: now().Add(-12 * time.Second)},
				// The clock was set back meanwhile.
				solana.MustPublicKeyFromBase58(second): {Lamports: 0, At: now().Add(time.Minute)},
			},
		},
		{Namespace: "b", Name: "lost"}: {UnavailableSince: now().Add(-5 * time.Minute), Cause: "no endpoint answers"},
	}
}

func newCollector(t *testing.T, r operatormetrics.Readings, items ...v1alpha1.RelayPool) *operatormetrics.Collector {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for i := range items {
		builder.WithObjects(&items[i])
	}
	c, err := operatormetrics.New(operatormetrics.Options{Pools: builder.Build(), Readings: r})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func compare(t *testing.T, c prometheus.Collector, m contract.Metric, samples ...string) {
	t.Helper()
	kind := "gauge"
	if strings.HasSuffix(m.Name, "_total") {
		kind = "counter"
	}
	var want strings.Builder
	if len(samples) > 0 {
		want.WriteString("# HELP " + m.Name + " " + m.Help + "\n# TYPE " + m.Name + " " + kind + "\n")
	}
	for _, s := range samples {
		want.WriteString(m.Name + s + "\n")
	}
	if err := testutil.CollectAndCompare(c, strings.NewReader(want.String()), m.Name); err != nil {
		t.Error(err)
	}
}

func TestGaugesShowTheStatusOfRelayPools(t *testing.T) {
	t.Parallel()
	c := newCollector(t, knownReadings(), pools()...)
	cases := map[string]struct {
		metric  contract.Metric
		samples []string
	}{
		"conditions, by RelayPool": {contract.MetricOperatorPoolCondition, []string{
			`{condition="Accepted",namespace="a",pool="well",reason="Valid",status="True"} 1`,
			`{condition="Ready",namespace="a",pool="well",reason="Ready",status="True"} 1`,
			`{condition="Ready",namespace="b",pool="lost",reason="ChainUnavailable",status="Unknown"} 1`,
			`{condition="Reconciling",namespace="a",pool="well",reason="Rotating",status="True"} 1`,
		}},
		"paused RelayPools":  {contract.MetricOperatorPaused, []string{`{namespace="a",pool="new"} 1`}},
		"times of readings":  {contract.MetricOperatorChainChecked, []string{`{namespace="a",pool="well"} ` + unix(-12)}},
		"unavailable chains": {contract.MetricOperatorChainUnavailableSince, []string{`{namespace="b",pool="lost"} ` + unix(-300)}},
		"balances": {contract.MetricOperatorPayerBalance, []string{
			`{namespace="a",payer="` + first + `",pool="well",state="active"} 1.5e+09`,
			`{namespace="a",payer="` + second + `",pool="well",state="retired"} 0`,
		}},
		"times of balances": {contract.MetricOperatorPayerBalanceTime, []string{
			`{namespace="a",payer="` + first + `",pool="well",state="active"} ` + unix(-12),
			`{namespace="a",payer="` + second + `",pool="well",state="retired"} ` + unix(60),
		}},
		"rotations under way": {contract.MetricOperatorRotation, []string{`{namespace="a",pool="well",step="Drain"} 1`}},
		"starts of steps":     {contract.MetricOperatorRotationStarted, []string{`{namespace="a",pool="well",step="Drain"} ` + unix(-90)}},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, c, tt.metric, tt.samples...)
		})
	}
}

func TestEveryRelayPoolCountsOnceUnderEachCondition(t *testing.T) {
	t.Parallel()
	compare(t, newCollector(t, knownReadings(), pools()...), contract.MetricOperatorPools, counts(map[string][3]int{
		"Accepted": {1, 0, 2}, "Ready": {1, 0, 2}, "Reconciling": {1, 2, 0}, "Stalled": {0, 3, 0}, "AutoscalingActive": {}, "Exposed": {}, "KeysBackedUp": {},
	}, 3)...)
	// The series exist without any RelayPool, at 0.
	compare(t, newCollector(t, knownReadings()), contract.MetricOperatorPools, counts(nil, 0)...)
}

// counts returns the samples of relaypool_operator_pools. byCondition has the numbers
// of RelayPools with True, False and Unknown. For a condition that is not in byCondition,
// all are Unknown.
func counts(byCondition map[string][3]int, total int) []string {
	var out []string
	for _, kind := range []string{"Accepted", "AutoscalingActive", "Available", "Exposed", "FeePayersFunded", "KeysBackedUp", "PoolInitialised", "Ready", "Reconciling", "SecretsResolved", "SpendingCapped", "Stalled"} {
		n, ok := byCondition[kind]
		if !ok {
			n = [3]int{0, 0, total}
		}
		for i, status := range []string{"False", "True", "Unknown"} {
			out = append(out, `{condition="`+kind+`",status="`+status+`"} `+string(rune('0'+n[[]int{1, 0, 2}[i]])))
		}
	}
	return out
}

func TestADeletedRelayPoolLeavesNoSample(t *testing.T) {
	t.Parallel()
	items := pools()
	c := newCollector(t, knownReadings(), items[2])
	compare(t, c, contract.MetricOperatorPayerBalance)
	compare(t, c, contract.MetricOperatorPoolCondition, `{condition="Ready",namespace="b",pool="lost",reason="ChainUnavailable",status="Unknown"} 1`)
}

func TestAnUnreadableCacheSendsNoSamples(t *testing.T) {
	t.Parallel()
	broken := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("the cache is not started")
		},
	})
	c, err := operatormetrics.New(operatormetrics.Options{Pools: broken, Readings: readings{}})
	if err != nil {
		t.Fatal(err)
	}
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d samples, want none", n)
	}
}

func TestOptionsAreRequired(t *testing.T) {
	t.Parallel()
	_, err := operatormetrics.New(operatormetrics.Options{})
	for _, name := range []string{"Pools", "Readings"} {
		if err == nil || !strings.Contains(err.Error(), "option "+name+" is not set") {
			t.Errorf("error %v, want it to name %s", err, name)
		}
	}
	if _, err := operatormetrics.NewCountingApplier(nil); err == nil {
		t.Error("NewCountingApplier accepts no applier")
	}
}
