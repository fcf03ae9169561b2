package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

func newReader(t *testing.T) *manifestReader {
	t.Helper()
	r, err := newManifestReader()
	noError(t, err)
	return r
}

const validPool = `apiVersion: relaypool.dev/v1alpha1
kind: RelayPool
metadata:
  name: demo
spec:
  pool:
    profile: {name: shield-pool-v1}
    verifyingKeyConfigMapRef: {name: circuit, key: verification_key.json}
  solana:
    cluster: devnet
    endpoints: [{name: a, url: "https://rpc.example"}]
  database: {urlSecretRef: {name: postgres, key: url}}
  feePayers: {generate: {count: 2}}
  viewingKeys: {compliancePublicKey: "0000000000000000000000000000000000000000000000000000000000000001"}
`

// changed returns validPool with other in place of old, which must occur once.
func changed(t *testing.T, old, other string) string {
	t.Helper()
	if strings.Count(validPool, old) != 1 {
		t.Fatalf("%q does not occur exactly once in validPool", old)
	}
	return strings.Replace(validPool, old, other, 1)
}

// plan and the API server must accept and refuse the same documents, with the
// same defaults.
func TestTheAPIServerAgrees(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		document string
		want     string // in the refusal; empty when the document is accepted
	}{
		"a valid RelayPool":           {validPool, ""},
		"with every optional group":   {validPool + "  swap: {router: {url: \"https://router.example\"}}\n  autoscaling: {maxReplicas: 4}\n  networkPolicy: {database: [{cidr: 10.0.0.0/8, port: 5432}], rpc: [{cidr: 0.0.0.0/0, port: 443}], router: [{cidr: 0.0.0.0/0, port: 443}]}\n  api: {}\n  monitoring: {}\n", ""},
		"an unknown field":            {changed(t, "verifyingKeyConfigMapRef:", "provingKey: x\n    verifyingKeyConfigMapRef:"), "spec.pool.provingKey"},
		"a missing field":             {changed(t, "  database: {urlSecretRef: {name: postgres, key: url}}\n", ""), "spec.database"},
		"a number in words":           {changed(t, "count: 2", "count: two"), "spec.feePayers.generate.count"},
		"a number that is too great":  {changed(t, "count: 2", "count: 33"), "should be less than or equal to 32"},
		"a null for a required value": {changed(t, "cluster: devnet", "cluster: null"), "spec.solana.cluster"},
		"a broken rule of the CRD":    {validPool + "  replicas: 2\n  autoscaling: {maxReplicas: 4}\n", "replicas and autoscaling exclude each other"},
		"two endpoints of one name":   {changed(t, "[{name: a, url: \"https://rpc.example\"}]", "[{name: a, url: \"https://rpc.example\"}, {name: a, url: \"https://rpc.example\"}]"), "Duplicate value"},
		"two sources of a URL":        {changed(t, "url: \"https://rpc.example\"", "url: \"https://rpc.example\", urlSecretRef: {name: x, key: z}"), "exactly one of the fields"},
		"a name in capitals":          {changed(t, "name: demo", "name: Demo"), "metadata.name"},
		"a name that is too long":     {changed(t, "name: demo", "name: "+strings.Repeat("d", 41)), "more than 40 characters"},
		"an invalid label":            {changed(t, "name: demo", "name: demo\n  labels: {a: \"b c\"}"), "metadata.labels"},
		"a status, which is dropped":  {validPool + "status: {replicas: 7, readyReplicas: 7}\n", ""},
		"no endpoint that submits":    {changed(t, "url: \"https://rpc.example\"", "url: \"https://rpc.example\", roles: [Read]"), "no endpoint has the role Submit"},
	}
	namespace := apiservertest.Namespace(t)
	server, err := ctrlclient.New(apiservertest.Config(t), ctrlclient.Options{})
	noError(t, err)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pools, _, err := newReader(t).read(t.Context(), strings.NewReader(tt.document), namespace)
			object := &unstructured.Unstructured{}
			noError(t, yaml.Unmarshal([]byte(tt.document), &object.Object))
			object.SetNamespace(namespace)
			refusal := server.Create(t.Context(), object, ctrlclient.DryRunAll, ctrlclient.FieldValidation("Strict"))
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error is %v, want %q in it", err, tt.want)
				}
				if refusal == nil || !apierrors.IsInvalid(refusal) && !apierrors.IsBadRequest(refusal) {
					t.Errorf("error of the API server is %v, want Invalid or BadRequest", refusal)
				}
				return
			}
			noError(t, err)
			noError(t, refusal)
			want := &v1alpha1.RelayPool{}
			noError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, want))
			if diff := cmp.Diff(want.Spec, pools[0].Spec); diff != "" {
				t.Errorf("defaults (-server +plan):\n%s", diff)
			}
		})
	}
}

func TestReadingAFile(t *testing.T) {
	t.Parallel()
	second := changed(t, "name: demo", "name: second\n  namespace: own")
	tests := map[string]struct {
		file       string
		wantPools  []string
		wantOthers int
		wantErr    []string
	}{
		"several, with other kinds between": {validPool + "---\napiVersion: v1\nkind: Secret\n---\n" + second + "---\n# nothing\n---\n", []string{"given/demo", "own/second"}, 1, nil},
		"another version of the group":      {"apiVersion: relaypool.dev/v1\nkind: RelayPool\n", nil, 1, nil},
		"nothing at all":                    {"", nil, 0, nil},
		"JSON":                              {`{"apiVersion":"v1","kind":"Secret"}`, nil, 1, nil},
		"a repeated key":                    {validPool + "spec: {}\n", nil, 0, []string{"document 1", "already set"}},
		"neither YAML nor JSON":             {"a: b: c", nil, 0, []string{"document 1: expected YAML or JSON"}},
		"a list":                            {validPool + "---\n- a\n", nil, 0, []string{"document 2: expected an object with apiVersion and kind"}},
		"every fault of every RelayPool": {
			strings.NewReplacer("count: 2", "count: 0", "cluster: devnet", "cluster: nowhere!").Replace(validPool) + "---\n" + strings.Replace(second, "count: 2", "count: -1", 1),
			nil, 0, []string{"RelayPool demo would be refused:\n  spec.feePayers.generate.count", "\n  spec.solana.cluster", "RelayPool second would be refused:\n  spec.feePayers.generate.count"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pools, others, err := newReader(t).read(t.Context(), strings.NewReader(tt.file), "given")
			for _, want := range tt.wantErr {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error is %v, want %q in it", err, want)
				}
			}
			if tt.wantErr != nil {
				return
			}
			noError(t, err)
			var got []string
			for _, p := range pools {
				got = append(got, p.Namespace+"/"+p.Name)
			}
			if diff := cmp.Diff(tt.wantPools, got); diff != "" || others != tt.wantOthers {
				t.Errorf("%d others, want %d; RelayPools (-want +got):\n%s", others, tt.wantOthers, diff)
			}
		})
	}
}

func TestADocumentMayNotBeHuge(t *testing.T) {
	t.Parallel()
	_, _, err := newReader(t).read(t.Context(), strings.NewReader(validPool+"# "+strings.Repeat("x", maxDocument)+"\n"), "given")
	if err == nil || !strings.Contains(err.Error(), "expected at most 3145728 bytes") {
		t.Errorf("error is %v", err)
	}
}

// Users copy the RelayPools of the documents: the API server must accept them.
func TestRelayPoolsInTheDocsAreValid(t *testing.T) {
	t.Parallel()
	reader, err := newManifestReader()
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	root, read := "../../..", 0
	check := func(path string) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, example := range block.FindAllStringSubmatch(string(content), -1) {
			if !strings.Contains(example[1], "kind: RelayPool") {
				continue
			}
			pools, _, err := reader.read(t.Context(), strings.NewReader(example[1]), "shield")
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			read += len(pools)
		}
	}
	check(filepath.Join(root, "README.md"))
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			check(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if read == 0 {
		t.Error("no document has a RelayPool: nothing was read")
	}
}
