package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// The canaries are values of Secrets, or parts of them that are secret on their own.
const (
	password   = "p4ssw0rd-c4n4ry"
	pathKey    = "path-key-c4n4ry-0123456789"
	apiKey     = "api-key-c4n4ry"
	privateKey = "[17,34,51,68,85,102,119,136]"
	quoted     = `c4n4ry "with" <quotes> & a very long tail of words, so that YAML might fold it over several of its lines`
)

// secrets makes the Secrets of the RelayPool, each with kubectl's copy of it in an annotation.
func (s *stand) secrets() map[string]string {
	s.t.Helper()
	values := map[string]string{
		"postgres url":          "postgres://relay:" + password + "@postgres:5432/relay\n",
		"rpc url":               "https://rpc.example/" + pathKey,
		"clients keys":          apiKey + "-1\n" + apiKey + "-2\n",
		"demo-payer-0-0 key":    privateKey,
		"clients quoted":        quoted,
		"not-ours key":          "another-c4n4ry",
		"clients short":         "ab",
		"demo-payer-0-0 unused": "",
	}
	data := map[string]map[string][]byte{}
	for name, value := range values {
		secret, key, _ := strings.Cut(name, " ")
		if data[secret] == nil {
			data[secret] = map[string][]byte{}
		}
		data[secret][key] = []byte(value)
	}
	for name, content := range data {
		copied, err := json.Marshal(content)
		noError(s.t, err)
		noError(s.t, s.client.Create(s.t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: s.namespace, Name: name, Labels: map[string]string{"team": "payments"},
				Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: string(copied)},
			},
			Data: content,
		}))
	}
	return values
}

// owned makes an object that the RelayPool owns.
func (s *stand) owned(pool *v1alpha1.RelayPool, object client.Object) {
	s.t.Helper()
	object.SetNamespace(s.namespace)
	object.SetLabels(build.Labels("demo"))
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(pool, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind))})
	noError(s.t, s.client.Create(s.t.Context(), object))
}

// fleet makes everything that a bundle has, with every value of a Secret in the places where a
// careless person or program might put it.
func (s *stand) fleet(values map[string]string) *v1alpha1.RelayPool {
	s.t.Helper()
	pool := s.relayPool(func(p *v1alpha1.RelayPool) {
		p.Spec.API.KeysSecretRef = &v1alpha1.SecretKeyReference{Name: "clients", Key: "keys"}
		p.Spec.Template.ImagePullSecrets = []v1alpha1.SecretReference{{Name: "absent"}}
		p.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: password, "note": values["rpc url"]}
	})
	leak := ""
	env := []corev1.EnvVar{{Name: "LITERAL", Value: "kept-literal"}}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if strings.HasPrefix(name, "not-ours") || len(values[name]) < shortest {
			continue
		}
		escaped, err := json.Marshal(values[name])
		noError(s.t, err)
		leak += values[name] + "\n" + string(escaped) + "\n" + base64.StdEncoding.EncodeToString([]byte(values[name])) + "\n"
		env = append(env, corev1.EnvVar{Name: "LEAK", Value: values[name]})
	}
	env = append(env, corev1.EnvVar{Name: "REFERENCE", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "postgres"}, Key: "url"}}})
	s.pod("demo-a", true, env...)
	for name, page := range map[string]string{"/health": `{"status":"ok"}`, "/metrics": "relaypool_backlog_submissions 7\n", "/backlog": backlogPage} {
		s.pages["demo-a "+name] = page + leak
	}
	s.logs["demo-a relay"] = "a line of the log\nconnect with " + password + " and /" + pathKey + "/\n" + leak
	s.logs["demo-a relay previous"] = leak
	s.podOf(map[string]string{build.LabelName: operatorLabel}, operatorContainer, "operator-a", true)
	s.logs["operator-a operator"] = "kept-line\n" + leak // and there is no log of an earlier run
	s.owned(pool, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Data: map[string]string{"endpoints.yaml": "kept-config", "leak": leak}})
	s.owned(pool, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080}}}})
	s.owned(pool, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: build.Selector("demo")},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: build.Labels("demo")}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "relay", Image: "example/relay:1", Env: env[:1]}}}},
	}})
	monitor := &unstructured.Unstructured{}
	monitor.SetGroupVersionKind(build.KindPodMonitor)
	monitor.SetName("demo")
	s.owned(pool, monitor)
	noError(s.t, s.client.Create(s.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "foreign", Labels: build.Labels("demo")}}))
	for reason, uid := range map[string]types.UID{"KeptEvent": pool.UID, "OtherEvent": "another"} {
		noError(s.t, s.client.Create(s.t.Context(), &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: strings.ToLower(reason)}, Reason: reason, Message: leak[:min(len(leak), 1000)],
			InvolvedObject: corev1.ObjectReference{Kind: "RelayPool", Namespace: s.namespace, Name: "demo", UID: uid},
		}))
	}
	return pool
}

// unpack returns the files of an archive.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	noError(t, err)
	defer func() { _ = f.Close() }()
	compressed, err := gzip.NewReader(f)
	noError(t, err)
	files := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		noError(t, err)
		content, err := io.ReadAll(archive)
		noError(t, err)
		files[header.Name] = string(content)
	}
}

func TestASupportBundleHasNoValueOfASecret(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	noError(t, apiservertest.Server(t).Install(apiservertest.ForeignCRD(build.KindPodMonitor, "podmonitors")))
	values := s.secrets()
	s.fleet(values)
	file := filepath.Join(t.TempDir(), "out.tar.gz")
	code, _, stderr := s.command("", "support-bundle", "demo", "-f", file, "--operator-namespace="+s.namespace)
	if code != 0 {
		t.Fatalf("exit code %d, want 0: %s", code, stderr)
	}
	files := unpack(t, file)
	want := []string{
		"events.yaml", "left-out.txt", "objects/configmap-demo.yaml", "objects/deployment-demo.yaml", "objects/podmonitor-demo.yaml", "objects/service-demo.yaml",
		"operator/operator-a/operator.log", "operator/operator-a/pod.yaml",
		"pods/demo-a/backlog.json", "pods/demo-a/health.json", "pods/demo-a/metrics.txt", "pods/demo-a/pod.yaml", "pods/demo-a/relay.log", "pods/demo-a/relay.previous.log",
		"relaypool.yaml", "secrets.yaml", "version.txt",
	}
	for i := range want {
		want[i] = "demo-support/" + want[i]
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	canaries := []string{password, pathKey, apiKey, privateKey, "with\" <quotes>", `with\" <quotes>`, "a very long tail of words", "another-c4n4ry", base64.StdEncoding.EncodeToString([]byte(privateKey)), base64.StdEncoding.EncodeToString([]byte(values["clients keys"]))}
	for name, content := range files {
		for _, canary := range append(canaries, "managedFields", corev1.LastAppliedConfigAnnotation) {
			if strings.Contains(content, canary) {
				t.Errorf("%s has %s:\n%s", name, canary, content)
			}
		}
	}
	for name, kept := range map[string]string{
		"pods/demo-a/pod.yaml": "kept-literal", "objects/configmap-demo.yaml": "kept-config", "pods/demo-a/relay.log": "connect with [value of Secret postgres, key url]",
		"pods/demo-a/metrics.txt": "relaypool_backlog_submissions 7", "events.yaml": "KeptEvent", "operator/operator-a/operator.log": "kept-line", "relaypool.yaml": "kind: RelayPool",
	} {
		if !strings.Contains(files["demo-support/"+name], kept) {
			t.Errorf("%s lacks %s:\n%s", name, kept, files["demo-support/"+name])
		}
	}
	if strings.Contains(files["demo-support/events.yaml"], "OtherEvent") {
		t.Error("events.yaml has an event of another object")
	}
	s.golden("secrets", files["demo-support/secrets.yaml"])
	s.golden("left-out", files["demo-support/left-out.txt"])
	info, err := os.Stat(file)
	noError(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the archive has the mode %s, want that only its owner may read it", info.Mode())
	}
}

// Whoever may only view a namespace gets a bundle without what they may not read.
func TestASupportBundleListsWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.secrets()
	s.relayPool(nil)
	s.pod("demo-a", true)
	s.viewer()
	file := filepath.Join(t.TempDir(), "out.tar.gz")
	code, _, stderr := s.command("", "support-bundle", "demo", "-f", file)
	if code != 0 {
		t.Fatalf("exit code %d, want 0: %s", code, stderr)
	}
	files := unpack(t, file)
	for _, missing := range []string{"keys of Secret postgres", "Deployment objects", "events", "pods/demo-a/metrics.txt: you may not get pods/proxy", "the operator's pods in the namespace relaypool-system"} {
		if !strings.Contains(stderr, "left out: "+missing) || !strings.Contains(files["demo-support/left-out.txt"], missing) {
			t.Errorf("%q is not listed as left out: %s", missing, stderr)
		}
	}
	if !strings.Contains(files["demo-support/secrets.yaml"], "name: postgres\n  unread: true") {
		t.Errorf("secrets.yaml does not name the Secrets that could not be read: %s", files["demo-support/secrets.yaml"])
	}
}

func TestSecretNamesAreFoundInAnyReference(t *testing.T) {
	t.Parallel()
	pool := &v1alpha1.RelayPool{}
	pool.Spec.Database.URLSecretRef.Name = "a"
	pool.Spec.Solana.Endpoints = []v1alpha1.Endpoint{{Name: "endpoint", URLSecretRef: &v1alpha1.SecretKeyReference{Name: "b", Key: "url"}}}
	pool.Spec.FeePayers.SecretRefs = []v1alpha1.SecretKeyReference{{Name: "c"}, {Name: "d"}}
	pool.Spec.FeePayers.Signers = []v1alpha1.Signer{{Name: "signer", VaultTransit: &v1alpha1.VaultTransit{
		TokenSecretRef: &v1alpha1.SecretKeyReference{Name: "e"}, CAFrom: &v1alpha1.CertificatesSource{SecretRef: &v1alpha1.SecretKeyReference{Name: "f"}},
	}}, {Name: "other", VaultTransit: &v1alpha1.VaultTransit{CAFrom: &v1alpha1.CertificatesSource{ConfigMapRef: &v1alpha1.ConfigMapKeyReference{Name: "configmap"}}}}}
	pool.Spec.Template.ImagePullSecrets = []v1alpha1.SecretReference{{Name: "g"}}
	pool.Status.FeePayers = []v1alpha1.FeePayerStatus{{SecretName: "h"}, {SecretName: "a"}, {SignerName: "signer"}}
	names, err := secretNames(pool)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e", "f", "g", "h"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
