package release_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/relay/contract"
)

const (
	olm       = "../../../config/olm/"
	olmModule = "-modfile=../../tools/operator-verify/go.mod"
)

// The manager's own validation, and OperatorHub's, have neither an error nor a warning.
func TestTheBundleIsValid(t *testing.T) {
	t.Parallel()
	program, err := exec.CommandContext(t.Context(), "go", "tool", olmModule, "-n", "operator-verify").Output()
	must(t, err)
	verify := exec.CommandContext(t.Context(), strings.TrimSpace(string(program)), "manifests", "--operatorhub_validate", "--object_validate", olm+"manifests")
	if output, err := verify.CombinedOutput(); err != nil || len(output) > 0 { // the program ends with 0 in any case
		t.Errorf("error %v and output, want none:\n%s", err, output)
	}
}

// A real API server accepts the ClusterServiceVersion with strict validation, by the manager's own
// definition.
func TestAnAPIServerAcceptsTheClusterServiceVersion(t *testing.T) {
	t.Parallel()
	c, _, server := clusterWithServer(t)
	output, err := exec.CommandContext(t.Context(), "go", "mod", "download", olmModule, "-json", "github.com/operator-framework/api").Output()
	must(t, err)
	var module struct{ Dir string }
	must(t, json.Unmarshal(output, &module))
	var definition apiextensionsv1.CustomResourceDefinition
	readYAML(t, filepath.Join(module.Dir, "crds", "operators.coreos.com_clusterserviceversions.yaml"), &definition)
	definition.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	must(t, server.Install(&definition))
	var csv unstructured.Unstructured
	readYAML(t, olm+"manifests/relaypool.clusterserviceversion.yaml", &csv.Object)
	csv.SetNamespace("default")
	must(t, c.Create(t.Context(), &csv, client.FieldValidation(metav1.FieldValidationStrict)))
	if want := "relaypool.v" + contract.Version; csv.GetName() != want {
		t.Errorf("the name is %s, want %s", csv.GetName(), want)
	}
	deployments, _, err := unstructured.NestedSlice(csv.Object, "spec", "install", "spec", "deployments")
	must(t, err)
	text, err := json.Marshal(deployments)
	must(t, err)
	if !strings.Contains(string(text), `{"name":"RELAYPOOL_NAMESPACES","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['olm.targetNamespaces']"}}}`) {
		t.Errorf("the Deployment does not take its namespaces from the OperatorGroup: %s", text)
	}
}

func TestTheBundlesImageHasItsAnnotations(t *testing.T) {
	t.Parallel()
	var metadata struct{ Annotations map[string]string }
	readYAML(t, olm+"metadata/annotations.yaml", &metadata)
	file, err := os.ReadFile(olm + "Dockerfile")
	must(t, err)
	labels := map[string]string{}
	for line := range strings.Lines(string(file)) {
		if label, isLabel := strings.CutPrefix(strings.TrimSpace(line), "LABEL "); isLabel {
			key, value, _ := strings.Cut(label, "=")
			labels[key] = value
		}
	}
	if len(labels) == 0 || !maps.Equal(labels, metadata.Annotations) {
		t.Errorf("the labels are %v, want the annotations %v", labels, slices.Sorted(maps.Keys(metadata.Annotations)))
	}
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	must(t, yaml.Unmarshal(content, into))
}
