package build_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

const resourceDefinition = "../../../config/crd/relaypool.dev_relaypools.yaml"

// fixtures are the inputs of the golden files, by the name of their file below
// testdata.
func fixtures(t *testing.T) map[string]build.Input {
	t.Helper()
	everything := build.Capabilities{PodMonitor: true, PrometheusRule: true, ScaledObject: true, HTTPRoute: true}
	minimal := input(load(t, "minimal"), 2)
	minimal.Capabilities = build.Capabilities{}
	full := input(load(t, "full"), 0)
	full.Replicas = nil
	full.Capabilities = everything
	keda := input(load(t, "keda"), 0)
	keda.Replicas = nil
	keda.Capabilities = everything
	keda.OperatorNamespace, keda.OperatorLabels = "", nil
	swap := input(load(t, "swap"), 3)
	swap.Capabilities = build.Capabilities{PrometheusRule: true}
	held := input(load(t, "held"), 0)
	held.Replicas = nil
	held.Withheld = true
	held.Capabilities = everything
	signers := input(load(t, "signers"), 2)
	exposed := input(load(t, "exposed"), 2)
	exposed.Capabilities = build.Capabilities{HTTPRoute: true}
	least, greatest := input(atBounds(t, false), 0), input(atBounds(t, true), 0)
	least.Pool.Name, greatest.Pool.Name = "l", strings.Repeat("g", 40)
	least.Replicas, greatest.Replicas = nil, nil
	return map[string]build.Input{
		"minimal": minimal, "full": full, "keda": keda, "swap": swap, "held": held, "signers": signers, "exposed": exposed, "least": least, "greatest": greatest,
	}
}

// rotation returns the rotation Jobs of the fixture swap.
func rotation(t *testing.T) []build.Object {
	t.Helper()
	in := input(load(t, "swap"), 3)
	var jobs []build.Object
	for _, step := range []build.Step{build.StepFund, build.StepDrain, build.StepSweep} {
		jobs = append(jobs, build.RotationJob(in, build.Rotation{
			Step: step, Revision: 3,
			From: []build.PayerMount{{Secret: "trading-payer-2-0", Key: "key"}},
			To:   []build.PayerMount{{Secret: "trading-payer-3-0", Key: "key"}},
		}))
	}
	return jobs
}

func input(pool *v1alpha1.RelayPool, replicas int32) build.Input {
	var payers []build.PayerMount
	for _, s := range pool.Spec.FeePayers.SecretRefs {
		payers = append(payers, build.PayerMount{Secret: s.Name, Key: s.Key})
	}
	if pool.Spec.FeePayers.Generate != nil {
		payers = []build.PayerMount{{Secret: pool.Name + "-payer-3-0", Key: "key"}}
	}
	return build.Input{
		Pool: pool, Image: "registry.example/relaypool/relay:default", Replicas: ptr.To(replicas), Payers: payers,
		Rollout:           []string{"Secret/postgres/5c1d/17", "ConfigMap/circuit/88aa/4"},
		OperatorNamespace: "relaypool-system",
		OperatorLabels:    map[string]string{"app.kubernetes.io/name": "relaypool-operator"},
	}
}

// load reads a RelayPool as the API server would store it: without unknown fields, and with
// the defaults of the CRD.
func load(t *testing.T, name string) *v1alpha1.RelayPool {
	t.Helper()
	document := read(t, name)
	structural, err := schema.NewStructural(definition(t))
	if err != nil {
		t.Fatal(err)
	}
	defaulting.Default(document, structural)
	return typed(t, document)
}

// atBounds returns the RelayPool with the most fields. Every number with bounds is at its
// minimum; if greatest is set, numbers are at their maximum and names have their greatest
// length.
func atBounds(t *testing.T, greatest bool) *v1alpha1.RelayPool {
	t.Helper()
	document := read(t, "full")
	document["spec"].(map[string]any)["swap"] = read(t, "swap")["spec"].(map[string]any)["swap"]
	set(definition(t).Properties["spec"], document["spec"].(map[string]any), greatest)
	return typed(t, document)
}

// set changes numbers and names as atBounds describes, in every object that exists.
func set(schema apiextensions.JSONSchemaProps, object map[string]any, greatest bool) {
	for name, field := range schema.Properties {
		bound := field.Minimum
		if greatest {
			bound = field.Maximum
		}
		switch {
		case name == "replicas": // excludes autoscaling
		case field.Type == "integer" && bound != nil:
			object[name] = int64(*bound)
		case name == "name" && field.MaxLength != nil && field.Pattern != "" && greatest:
			own := object[name].(string) // its last letter keeps the long name unique
			object[name] = strings.Repeat("a", int(*field.MaxLength)-1) + own[len(own)-1:]
		case field.Type == "object" && object[name] != nil:
			set(field, object[name].(map[string]any), greatest)
		case field.Type == "array" && object[name] != nil && field.Items.Schema.Type == "object":
			for _, item := range object[name].([]any) {
				set(*field.Items.Schema, item.(map[string]any), greatest)
			}
		}
	}
}

func read(t *testing.T, name string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name+".pool.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := yaml.UnmarshalStrict(content, &document); err != nil {
		t.Fatal(err)
	}
	return document
}

func typed(t *testing.T, document map[string]any) *v1alpha1.RelayPool {
	t.Helper()
	content, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	pool := new(v1alpha1.RelayPool)
	if err := yaml.UnmarshalStrict(content, pool); err != nil {
		t.Fatal(err)
	}
	return pool
}

func definition(t *testing.T) *apiextensions.JSONSchemaProps {
	t.Helper()
	content, err := os.ReadFile(resourceDefinition)
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &definition); err != nil {
		t.Fatal(err)
	}
	internal := new(apiextensions.JSONSchemaProps)
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil); err != nil {
		t.Fatal(err)
	}
	return internal
}

// asUnstructured returns an object as it would be sent.
func asUnstructured(t *testing.T, o build.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := json.Marshal(o.Config)
	if err != nil {
		t.Fatal(err)
	}
	u := new(unstructured.Unstructured)
	if err := u.UnmarshalJSON(content); err != nil {
		t.Fatalf("%s %s: %v", o.Kind.Kind, o.Name, err)
	}
	return u
}

func into[T any](t *testing.T, o build.Object) *T {
	t.Helper()
	content, err := json.Marshal(o.Config)
	if err != nil {
		t.Fatal(err)
	}
	to := new(T)
	if err := yaml.UnmarshalStrict(content, to); err != nil {
		t.Fatalf("%s %s: %v", o.Kind.Kind, o.Name, err)
	}
	return to
}

// single returns the object of a kind, and fails when there is not exactly one.
func single(t *testing.T, objects []build.Object, kind string) build.Object {
	t.Helper()
	var found []build.Object
	for _, o := range objects {
		if o.Kind.Kind == kind {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of kind %s, want one", len(found), kind)
	}
	return found[0]
}
