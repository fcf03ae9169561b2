package externalmetrics_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/controllers/internal/servingcert"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/openapi"
)

// replicas returns the wanted replicas of the Deployment.
func (w *world) replicas(t *testing.T, name string) int32 {
	t.Helper()
	var d appsv1.Deployment
	w.Get(t, name, &d)
	return ptr.Deref(d.Spec.Replicas, -1)
}

func (w *world) awaitReplicas(t *testing.T, name string, want int32) {
	t.Helper()
	pooltest.Eventually(t, fmt.Sprintf("%d replicas that are ready", want), func() error {
		var d appsv1.Deployment
		w.Get(t, name, &d)
		if got := ptr.Deref(d.Spec.Replicas, -1); got != want || d.Status.AvailableReplicas != want {
			return fmt.Errorf("%d are wanted, %d ready", got, d.Status.AvailableReplicas)
		}
		return nil
	})
}

// awaitHPA waits until the autoscaler's condition has that status and reason.
func (w *world) awaitHPA(t *testing.T, name string, kind autoscalingv2.HorizontalPodAutoscalerConditionType, want string) {
	t.Helper()
	var got autoscalingv2.HorizontalPodAutoscaler
	pooltest.Eventually(t, fmt.Sprintf("%s of the autoscaler is %s", kind, want), func() error {
		if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, &got); err != nil {
			return err // it is created some passes after its RelayPool
		}
		for _, c := range got.Status.Conditions {
			if c.Type == kind {
				if is := string(c.Status) + "/" + c.Reason; is != want {
					return fmt.Errorf("it is %s: %s", is, c.Message)
				}
				return nil
			}
		}
		return errors.New("it is not set")
	})
}

// awaitReading waits until the autoscaler has read the given number of submissions.
func (w *world) awaitReading(t *testing.T, name string, want int64) {
	t.Helper()
	pooltest.Eventually(t, fmt.Sprintf("the autoscaler reads %d", want), func() error {
		var a autoscalingv2.HorizontalPodAutoscaler
		w.Get(t, name, &a)
		for _, m := range a.Status.CurrentMetrics {
			if m.External == nil || m.External.Metric.Name != contract.MetricBacklog.Name || m.External.Current.AverageValue == nil {
				continue
			}
			each := m.External.Current.AverageValue.MilliValue()
			if total := each * int64(a.Status.CurrentReplicas); total < want*1000-int64(a.Status.CurrentReplicas) || total > want*1000+int64(a.Status.CurrentReplicas) {
				return fmt.Errorf("it reads %d thousandths for each of %d pods", each, a.Status.CurrentReplicas)
			}
			return nil
		}
		return errors.New("it reads nothing")
	})
}

// Kubernetes' own autoscaler reads the backlog through the API server from the operator, as
// in a cluster. The fleet grows with the due work, not with the held work. It does not change
// while the backlog is unknown, and it shrinks slowly.
func TestFleetFollowsItsBacklogAndHoldsWhileItIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, servingcert.Options{})
	must(t, w.Chain.Initialize())
	held := openapi.Backlog{PendingCount: 500, OldestAgeSeconds: 40, Held: map[string]int64{"fee_payer_empty": 300, "chain_unavailable": 200}}
	w.pods.set(&held)
	w.Create(t, w.Pool("demo", func(p *v1alpha1.RelayPool) {
		p.Spec.Autoscaling = &v1alpha1.Autoscaling{Provider: v1alpha1.ProviderHPA, MinReplicas: 1, MaxReplicas: 6, SubmissionsPerReplica: 64}
	}))
	w.Fund(t, "demo", 2_000_000_000)

	// All waiting work is held: the autoscaler reads 0, and reports that.
	w.awaitHPA(t, "demo", autoscalingv2.ScalingActive, "True/ValidMetricFound")
	w.awaitReading(t, "demo", 0)
	limited := w.Await(t, "demo", v1alpha1.ConditionAutoscalingActive, "True/Limited")
	for _, want := range []string{"HPA", "fee_payer_empty", "chain_unavailable"} {
		if !strings.Contains(limited.Message, want) {
			t.Errorf("message %q: want %s in it", limited.Message, want)
		}
	}
	if got := w.replicas(t, "demo"); got != 1 {
		t.Errorf("%d replicas for work that is held: want 1", got)
	}

	w.pods.set(&openapi.Backlog{PendingCount: 200, DueCount: 200, OldestAgeSeconds: 3, OldestDueAgeSeconds: 3})
	w.awaitReplicas(t, "demo", 4)
	w.Await(t, "demo", v1alpha1.ConditionAutoscalingActive, "True/Scaling")

	// The pods answer 503: the backlog is unknown, not 0.
	w.pods.set(nil)
	w.awaitHPA(t, "demo", autoscalingv2.ScalingActive, "False/FailedGetExternalMetric")
	unavailable := w.Await(t, "demo", v1alpha1.ConditionAutoscalingActive, "False/MetricUnavailable")
	for _, want := range []string{"HPA", "the backlog of RelayPool", "their database is away"} {
		if !strings.Contains(unavailable.Message, want) {
			t.Errorf("message %q: want %s in it", unavailable.Message, want)
		}
	}
	w.checkHolds(t, "demo", 4)

	w.pods.set(&openapi.Backlog{})
	w.awaitHPA(t, "demo", autoscalingv2.ScalingActive, "True/ValidMetricFound")
	w.awaitReading(t, "demo", 0)
	// Fewer pods must be enough for five minutes before one is removed.
	w.awaitHPA(t, "demo", autoscalingv2.AbleToScale, "True/ScaleDownStabilized")
	if got := w.replicas(t, "demo"); got != 4 {
		t.Errorf("%d replicas a moment after the work has gone: want 4", got)
	}
	w.checkShrinks(t, "demo", 4)
}

// checkHolds checks that the replicas do not change while the autoscaler fails several times.
func (w *world) checkHolds(t *testing.T, name string, want int32) {
	t.Helper()
	before := -1
	pooltest.Eventually(t, "the autoscaler fails several times", func() error {
		var events corev1.EventList
		if err := w.Client.List(t.Context(), &events, client.InNamespace(w.Namespace)); err != nil {
			return err
		}
		failures := 0
		for i := range events.Items {
			if e := &events.Items[i]; e.InvolvedObject.Name == name && e.Reason == "FailedGetExternalMetric" {
				failures += int(max(e.Count, 1))
			}
		}
		if before < 0 {
			before = failures
		}
		if got := w.replicas(t, name); got != want {
			t.Fatalf("%d replicas while the backlog is unknown: want %d", got, want)
		}
		if failures < before+3 {
			return fmt.Errorf("it failed %d times, %d of them before this check", failures, before)
		}
		return nil
	})
}

// checkShrinks pauses the RelayPool, shortens the autoscaler's times for scaling down, and checks
// that the fleet shrinks to one pod, one at a time.
func (w *world) checkShrinks(t *testing.T, name string, from int32) {
	t.Helper()
	pooltest.Change(t, w.Stand, name, &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) { p.Spec.Paused = true })
	w.Await(t, name, v1alpha1.ConditionReady, "True/Paused")
	pooltest.Change(t, w.Stand, name, &autoscalingv2.HorizontalPodAutoscaler{}, func(a *autoscalingv2.HorizontalPodAutoscaler) {
		down := a.Spec.Behavior.ScaleDown
		if ptr.Deref(down.StabilizationWindowSeconds, 0) != 300 || len(down.Policies) != 1 || down.Policies[0].Value != 1 || down.Policies[0].PeriodSeconds != 60 {
			t.Fatalf("it would scale down with %+v: want one pod a minute after five minutes", down)
		}
		down.StabilizationWindowSeconds, down.Policies[0].PeriodSeconds = ptr.To[int32](0), 2
	})
	// The autoscaler's events show each step, which a reader of the Deployment may miss on a busy machine.
	pooltest.Eventually(t, "the fleet shrinks to one pod, one by one", func() error {
		var events corev1.EventList
		if err := w.Client.List(t.Context(), &events, client.InNamespace(w.Namespace)); err != nil {
			return err
		}
		var missing []int32
		for size := from - 1; size >= 1; size-- {
			if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
				return e.InvolvedObject.Name == name && e.Reason == "SuccessfulRescale" && strings.HasPrefix(e.Message, fmt.Sprintf("New size: %d; reason: All metrics below target", size))
			}) {
				missing = append(missing, size)
			}
		}
		if got := w.replicas(t, name); got != 1 || len(missing) > 0 {
			return fmt.Errorf("there are %d replicas, and no step to %v", got, missing)
		}
		return nil
	})
}

func TestReadPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, servingcert.Options{})
	must(t, w.Chain.Initialize())
	w.pods.set(&openapi.Backlog{PendingCount: 7, DueCount: 5, OldestDueAgeSeconds: 12})
	w.Create(t, w.Pool("demo", func(p *v1alpha1.RelayPool) { p.Spec.Autoscaling = &v1alpha1.Autoscaling{MaxReplicas: 2} }))
	w.Create(t, w.Pool("fixed"))
	other := w.SecondNamespace(t)
	const hpa = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
	controller, err := w.server.User(hpa, "system:serviceaccounts", "system:serviceaccounts:kube-system")
	must(t, err)
	stranger, err := w.server.User("stranger")
	must(t, err)
	metric, demo := contract.MetricBacklog.Name, selectorOf(w.Namespace, "demo")
	pooltest.Eventually(t, "the backlog is read", func() error {
		_, _, err := ask(t.Context(), controller, w.Namespace, metric, demo)
		return err
	})
	for metric, want := range map[string]int64{contract.MetricBacklog.Name: 5, contract.MetricBacklogAge.Name: 12} {
		list, _, err := askAgain(t, controller, w.Namespace, metric, demo)
		must(t, err)
		if len(list.Items) != 1 || list.Items[0].Value.Value() != want || list.Items[0].MetricLabels["pool"] != "demo" || time.Since(list.Items[0].Timestamp.Time) > time.Minute {
			t.Errorf("%s is %+v: want one recent value of %d", metric, list.Items, want)
		}
	}
	tests := map[string]struct {
		namespace, metric, selector string
		want                        int
		says                        string
	}{
		"another namespace's pool, by the request":  {other.Namespace, metric, demo, http.StatusForbidden, "both have to be the same"},
		"another namespace's pool, by the selector": {w.Namespace, metric, selectorOf(other.Namespace, "demo"), http.StatusForbidden, "both have to be the same"},
		"a namespace without a pool":                {other.Namespace, metric, "", http.StatusNotFound, "no RelayPool in the namespace"},
		"a pool that does not exist":                {w.Namespace, metric, selectorOf(w.Namespace, "none"), http.StatusNotFound, "no RelayPool in the namespace"},
		"a pool of a fixed size":                    {w.Namespace, metric, selectorOf(w.Namespace, "fixed"), http.StatusNotFound, "no spec.autoscaling"},
	}
	for name, tt := range tests {
		_, code, err := askAgain(t, controller, tt.namespace, tt.metric, tt.selector)
		if code != tt.want || err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %d that says %q", name, err, tt.want, tt.says)
		}
	}
	if _, code, err := ask(t.Context(), stranger, w.Namespace, metric, demo); code != http.StatusForbidden {
		t.Errorf("a stranger gets %v: want 403", err)
	}
	if _, code, err := askAgain(t, controller, w.Namespace, "another_metric", ""); code != http.StatusNotFound || !strings.Contains(err.Error(), "there is no such external metric") {
		t.Errorf("another metric: %v, want 404", err)
	}
	address, _ := w.operator.External.Address()
	direct := *controller
	direct.Host, direct.CAData, direct.Insecure = "https://"+address, nil, true
	direct.CertData, direct.KeyData = nil, nil
	if _, code, err := ask(t.Context(), &direct, w.Namespace, metric, demo); code != http.StatusUnauthorized {
		t.Errorf("a client without credentials gets %v: want 401", err)
	}
	w.checkMissingObjects(t, address)
}

// checkMissingObjects breaks, one by one, the objects that lead from the autoscaler to the
// operator, and checks what the condition says. The condition distinguishes the causes by
// the messages of Kubernetes' own client and controller.
func (w *world) checkMissingObjects(t *testing.T, address string) {
	t.Helper()
	w.Await(t, "demo", v1alpha1.ConditionAutoscalingActive, "True/Scaling")
	says := func(want string) {
		t.Helper()
		pooltest.Eventually(t, "the condition says that "+want, func() error {
			if got := w.Await(t, "demo", v1alpha1.ConditionAutoscalingActive, "False/MetricUnavailable"); !strings.Contains(got.Message, want) {
				return errors.New(got.Message)
			}
			return nil
		})
	}
	w.routeService(t, "127.0.0.1:1") // nothing listens there
	says("does not answer")
	apiService := &unstructured.Unstructured{}
	apiService.SetAPIVersion("apiregistration.k8s.io/v1")
	apiService.SetKind("APIService")
	apiService.SetName(contract.ExternalMetricsAPIService)
	must(t, w.Client.Delete(t.Context(), apiService))
	says("no server of external metrics exists in this cluster")
	w.routeService(t, address)
	w.Await(t, "demo", v1alpha1.ConditionAutoscalingActive, "True/Scaling")
}
