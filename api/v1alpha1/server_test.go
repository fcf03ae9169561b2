package v1alpha1_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

func newTypedClient(t *testing.T) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(s), autoscalingv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	cl, err := client.New(apiservertest.Config(t), client.Options{Scheme: s, FieldValidation: "Strict"})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// People start from the samples, so the server must accept them unchanged.
func TestSamplesAreAccepted(t *testing.T) {
	t.Parallel()
	cl := newClient(t)
	namespace := apiservertest.Namespace(t)
	for name, object := range samples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object.SetNamespace(namespace)
			if err := cl.Create(t.Context(), object); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUnknownFieldsAreErrorsWithStrictValidation(t *testing.T) {
	t.Parallel()
	object := minimal(t, apiservertest.Namespace(t), `{"spec":{"replica":3}}`)
	err := newClient(t).Create(t.Context(), object)
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.replica"`) {
		t.Errorf("the error is %v, expected one that names the unknown field", err)
	}
}

// The server sets defaults: neither the operator nor a reader of the object has
// to know them. The defaults of an omitted part apply, too.
func TestDefaults(t *testing.T) {
	t.Parallel()
	object := minimal(t, apiservertest.Namespace(t), `{"spec":{
		"autoscaling":{"maxReplicas":2},"swap":{"router":{"url":"https://r.example"}}}}`)
	if err := newClient(t).Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.RelayPoolSpec{
		Concurrency: 256,
		Pool: v1alpha1.Pool{
			Profile:                  v1alpha1.Profile{Name: "shield-pool-v1"},
			VerifyingKeyConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "shield-verifying-key", Key: "verification_key.json"},
			ProofAEncoding:           v1alpha1.ProofAAuto, OffCurveRecipients: "Refuse", Gate: v1alpha1.GateHold, CheckIntervalSeconds: 60,
		},
		Solana: v1alpha1.Solana{
			Cluster: "mainnet-beta",
			Endpoints: []v1alpha1.Endpoint{{
				Name: "paid", URLSecretRef: &v1alpha1.SecretKeyReference{Name: "shield-rpc", Key: "url"}, WebSocket: "Enabled",
			}},
			Commitment:  v1alpha1.CommitmentConfirmed,
			PriorityFee: v1alpha1.PriorityFee{Percentile: new(int32(40)), FloorMicroLamports: new(int64(0)), CapMicroLamports: new(int64(1_000_000))},

			TransactionFormat: v1alpha1.FormatLegacy,
		},
		Database: v1alpha1.Database{URLSecretRef: v1alpha1.SecretKeyReference{Name: "shield-database", Key: "url"}, MaxConnections: 40},
		FeePayers: v1alpha1.FeePayers{
			SecretRefs:             []v1alpha1.SecretKeyReference{{Name: "shield-payer", Key: "key"}},
			MinimumBalanceLamports: new(int64(50_000_000)), TargetBalanceLamports: new(int64(1_000_000_000)),
		},
		Swap: &v1alpha1.Swap{
			Router:      v1alpha1.Router{URL: "https://r.example", TimeoutMilliseconds: 5000},
			SlippageBps: 50, Concurrency: 64,
		},
		ViewingKeys: v1alpha1.ViewingKeys{CompliancePublicKey: "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"},
		API:         v1alpha1.API{RequestsPerMinute: new(int32(600)), WaitSeconds: new(int32(30)), RetentionHours: 168},
		Autoscaling: &v1alpha1.Autoscaling{Provider: v1alpha1.ProviderHPA, MinReplicas: 1, MaxReplicas: 2, SubmissionsPerReplica: 64},
		Monitoring:  v1alpha1.Monitoring{PodMonitor: v1alpha1.Enabled, PrometheusRule: v1alpha1.Enabled, IntervalSeconds: 15},
		Template:    v1alpha1.Template{LogLevel: v1alpha1.LogInfo},
	}
	if diff := cmp.Diff(want, typed(t, object).Spec); diff != "" {
		t.Errorf("spec as the server has it (-want +got):\n%s", diff)
	}
}

// A Go program omits numbers and switches that it does not set, so that the
// server's defaults apply, and writes zero where zero has a meaning.
func TestTypedObjectsGetDefaultsAndKeepZeros(t *testing.T) {
	t.Parallel()
	cl := newTypedClient(t)
	pool := typed(t, minimal(t, apiservertest.Namespace(t), `{"spec":{"replicas":0,"api":{"requestsPerMinute":0,"waitSeconds":0}}}`))
	if err := cl.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if pool.Spec.Replicas == nil || *pool.Spec.Replicas != 0 {
		t.Errorf("replicas = %v, expected 0", pool.Spec.Replicas)
	}
	if pool.Spec.Concurrency != 256 {
		t.Errorf("concurrency = %d, expected the default", pool.Spec.Concurrency)
	}
	want := v1alpha1.API{RequestsPerMinute: new(int32(0)), WaitSeconds: new(int32(0)), RetentionHours: 168}
	if diff := cmp.Diff(want, pool.Spec.API); diff != "" {
		t.Errorf("spec.api (-want +got):\n%s", diff)
	}
}

func TestScaleSubresource(t *testing.T) {
	t.Parallel()
	cl := newTypedClient(t)
	tests := map[string]struct {
		spec         string
		scaleTo      int32
		wantReplicas int32
		wantErr      string
	}{
		"scaling writes spec.replicas":            {spec: `{"spec":{"replicas":2}}`, scaleTo: 5, wantReplicas: 5},
		"a fleet can be scaled to nothing":        {spec: `{"spec":{"replicas":2}}`, scaleTo: 0, wantReplicas: 0},
		"scaling keeps to the bounds":             {spec: `{"spec":{"replicas":2}}`, scaleTo: 201, wantErr: "should be less than or equal to 200"},
		"an autoscaled fleet refuses scaling":     {spec: `{"spec":{"autoscaling":{"maxReplicas":3}}}`, scaleTo: 5, wantErr: "replicas"},
		"without spec.replicas there is no scale": {spec: `{}`, scaleTo: 5, wantErr: ".spec.replicas"},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			object := typed(t, minimal(t, apiservertest.Namespace(t), tt.spec))
			if err := cl.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			object.Status = v1alpha1.RelayPoolStatus{Replicas: 2, ReadyReplicas: 1, Selector: "app.kubernetes.io/instance=shield"}
			if err := cl.Status().Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			scale := &autoscalingv1.Scale{}
			err := cl.SubResource("scale").Get(t.Context(), object, scale)
			if err == nil {
				if diff := cmp.Diff(autoscalingv1.ScaleStatus{Replicas: 2, Selector: "app.kubernetes.io/instance=shield"}, scale.Status); diff != "" {
					t.Errorf("the scale's status (-want +got):\n%s", diff)
				}
				scale.Spec.Replicas = tt.scaleTo
				err = cl.SubResource("scale").Update(t.Context(), object, client.WithSubResourceBody(scale))
			}
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("the error is %v, expected one with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := cl.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tt.wantReplicas, object.Spec.Replicas); diff != "" {
				t.Errorf("spec.replicas (-want +got):\n%s", diff)
			}
		})
	}
}

// kubectl scale sends a patch, which works without spec.replicas: a fleet of
// the default size can be scaled like any other.
func TestKubectlScale(t *testing.T) {
	t.Parallel()
	cl := newTypedClient(t)
	tests := map[string]struct {
		spec    string
		want    *int32
		wantErr string
	}{
		"a fleet with spec.replicas":    {spec: `{"spec":{"replicas":2}}`, want: new(int32(3))},
		"a fleet without spec.replicas": {spec: `{}`, want: new(int32(3))},
		"an autoscaled fleet":           {spec: `{"spec":{"autoscaling":{"maxReplicas":3}}}`, wantErr: "replicas and autoscaling exclude each other"},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			object := typed(t, minimal(t, apiservertest.Namespace(t), tt.spec))
			if err := cl.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))
			err := cl.SubResource("scale").Patch(t.Context(), object.DeepCopy(), patch, client.WithSubResourceBody(&autoscalingv1.Scale{}))
			switch {
			case tt.wantErr == "" && err != nil:
				t.Fatal(err)
			case tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)):
				t.Fatalf("the error is %v, expected one with %q", err, tt.wantErr)
			}
			if err := cl.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, object.Spec.Replicas); diff != "" {
				t.Errorf("spec.replicas (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPrintColumns checks what kubectl get relaypools shows.
func TestPrintColumns(t *testing.T) {
	t.Parallel()
	cl := newClient(t)
	namespace := apiservertest.Namespace(t)
	object := minimal(t, namespace)
	if err := cl.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	merge(t, object, `{"status":{"desiredReplicas":4,"replicas":3,"readyReplicas":2,"backlog":17,"conditions":[
		{"type":"Ready","status":"False","reason":"PodsNotReady","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"},
		{"type":"PoolInitialised","status":"True","reason":"Reason","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"},
		{"type":"FeePayersFunded","status":"Unknown","reason":"Reason","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	if err := cl.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	table := getTable(t, namespace)
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	if diff := cmp.Diff([]string{"Name", "Ready", "Reason", "Ready-Pods", "Desired-Pods", "Backlog", "Initialised", "Funded", "Age"}, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("%d rows, expected 1", len(table.Rows))
	}
	cells := table.Rows[0].Cells
	if diff := cmp.Diff([]any{"shield", "False", "PodsNotReady", int64(2), int64(4), int64(17), "True", "Unknown"}, cells[:len(cells)-1]); diff != "" {
		t.Errorf("cells without the age (-want +got):\n%s", diff)
	}
}

func getTable(t *testing.T, namespace string) *metav1.Table {
	t.Helper()
	config := rest.CopyConfig(apiservertest.Config(t))
	config.GroupVersion = &schema.GroupVersion{Group: v1alpha1.Group, Version: "v1alpha1"}
	config.APIPath = "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	cl, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	text, err := cl.Get().Namespace(namespace).Resource("relaypools").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(text, table); err != nil {
		t.Fatal(err)
	}
	for i := range table.Rows { // JSON numbers are floating point here
		for j, cell := range table.Rows[i].Cells {
			if number, ok := cell.(float64); ok {
				table.Rows[i].Cells[j] = int64(number)
			}
		}
	}
	return table
}

// The status is the operator's: a user who writes it along with the spec
// changes nothing.
func TestStatusIsASubresource(t *testing.T) {
	t.Parallel()
	object := minimal(t, apiservertest.Namespace(t), `{"status":{"initialisedAt":"2026-01-01T00:00:00Z"}}`)
	if err := newClient(t).Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if typed(t, object).Status.InitialisedAt != nil {
		t.Error("a status was written through the main resource: users could open the gate")
	}
}

// TestNames checks the resource names, with the short name rp.
func TestNames(t *testing.T) {
	t.Parallel()
	config := apiservertest.Config(t)
	cl, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := cl.Get(config.Host + "/apis/relaypool.dev/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	list := &metav1.APIResourceList{}
	if err := json.NewDecoder(answer.Body).Decode(list); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for i := range list.APIResources {
		got[list.APIResources[i].Name] = list.APIResources[i].ShortNames
	}
	want := map[string][]string{"relaypools": {"rp"}, "relaypools/status": nil, "relaypools/scale": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources with their short names (-want +got):\n%s", diff)
	}
}
