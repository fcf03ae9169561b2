package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/relay/commandline"
)

// image is the image that start configures.
const image = "registry.example/relay:1"

// manifest is a RelayPool as a person writes it.
func manifest(t *testing.T, pool *v1alpha1.RelayPool) string {
	t.Helper()
	content, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.Kind,
		"metadata": map[string]string{"namespace": pool.Namespace, "name": pool.Name}, "spec": pool.Spec,
	})
	noError(t, err)
	return string(content)
}

// documents returns the kinds of the objects in a plan's output.
func documents(out string) (kinds []string) {
	for line := range strings.Lines(out) {
		if kind, ok := strings.CutPrefix(line, "kind: "); ok {
			kinds = append(kinds, strings.TrimSpace(kind))
		}
	}
	slices.Sort(kinds)
	return kinds
}

func planWithServer(t *testing.T, cluster *rest.Config, pool *v1alpha1.RelayPool, flags ...string) (code int, out, stderr string) {
	t.Helper()
	return command(t, manifest(t, pool), append([]string{
		"plan", "-f", "-", "--server", "--kubeconfig=" + kubeconfig(t, cluster), "--relay-image=" + image, "--operator-namespace=" + pool.Namespace,
	}, flags...)...)
}

// listObjects lists the objects of a namespace, with their resource versions.
func listObjects(t *testing.T, s *pooltest.Stand) (found []string) {
	t.Helper()
	for _, list := range []runtimeclient.ObjectList{&v1alpha1.RelayPoolList{}, &appsv1.DeploymentList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{}} {
		noError(t, s.Client.List(t.Context(), list, runtimeclient.InNamespace(s.Namespace)))
		switch l := list.(type) {
		case *v1alpha1.RelayPoolList:
			for i := range l.Items {
				found = append(found, "RelayPool "+l.Items[i].Name+" "+l.Items[i].ResourceVersion)
			}
		case *appsv1.DeploymentList:
			for i := range l.Items {
				found = append(found, "Deployment "+l.Items[i].Name+" "+l.Items[i].ResourceVersion)
			}
		case *corev1.SecretList:
			for i := range l.Items {
				found = append(found, "Secret "+l.Items[i].Name+" "+l.Items[i].ResourceVersion)
			}
		case *corev1.ConfigMapList:
			for i := range l.Items {
				found = append(found, "ConfigMap "+l.Items[i].Name+" "+l.Items[i].ResourceVersion)
			}
		case *corev1.ServiceList:
			for i := range l.Items {
				found = append(found, "Service "+l.Items[i].Name+" "+l.Items[i].ResourceVersion)
			}
		}
	}
	return found
}

func TestPlanOfAClusterPrintsTheChanges(t *testing.T) {
	cluster := apiservertest.Config(t)
	s := pooltest.NewStand(t, cluster)
	noError(t, s.Chain.Initialize())
	o := start(t, cluster, s.Namespace)
	s.Create(t, s.Pool("runs"))
	pooltest.Eventually(t, "the fleet starts", func() error {
		var d appsv1.Deployment
		err := s.Client.Get(t.Context(), runtimeclient.ObjectKey{Namespace: s.Namespace, Name: "runs"}, &d)
		if err == nil && *d.Spec.Replicas == 0 {
			err = errors.New("the gate is closed")
		}
		return err
	})
	noError(t, o.Stop(stopWithin)) // from here on, only a plan could change anything
	s.Create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "taken"}})
	tests := map[string]struct {
		pool     *v1alpha1.RelayPool
		flags    []string
		wantCode int
		want     []string // kinds that are printed
		says     []string
	}{
		"no change": {pool: s.Pool("runs"), says: []string{"runs: 5 of its objects would stay as they are"}},
		"another number of pods": {
			pool: s.Pool("runs", func(p *v1alpha1.RelayPool) { p.Spec.Replicas = new(int32(5)) }),
			want: []string{"Deployment"}, says: []string{"Deployment runs would be changed", "4 of its objects would stay"},
		},
		"a network policy, another setting": {
			pool: s.Pool("runs", func(p *v1alpha1.RelayPool) {
				p.Spec.NetworkPolicy = &v1alpha1.NetworkPolicy{Database: []v1alpha1.Destination{{CIDR: "10.0.0.0/8", Port: 5432}}, RPC: []v1alpha1.Destination{{CIDR: "0.0.0.0/0", Port: 443}}}
				p.Spec.Solana.Endpoints = append(p.Spec.Solana.Endpoints, v1alpha1.Endpoint{Name: "other", URL: "https://rpc.example"})
			}),
			want: []string{"ConfigMap", "Deployment", "NetworkPolicy"}, says: []string{"NetworkPolicy runs would be made", "ConfigMap runs would be changed"},
		},
		"another RelayPool": {
			pool: s.Pool("new"), want: []string{"ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "ServiceAccount"},
			says: []string{"new: the RelayPool would be made", "a key would be made in each of the Secrets new-payer-0-0", "Deployment new would be made", "held at 0 pods"},
		},
		"another program, which cannot be changed": {
			pool: s.Pool("runs", func(p *v1alpha1.RelayPool) { p.Spec.Pool.Profile.Name = "shield-pool-v1" }), wantCode: commandline.ExitFailed,
			says: []string{"the cluster would refuse RelayPool runs", "profile"},
		},
		"a Secret that is missing": {
			pool: s.Pool("new", func(p *v1alpha1.RelayPool) { p.Spec.Database.URLSecretRef.Name = "nowhere" }), wantCode: commandline.ExitFailed,
			want: []string{"ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "ServiceAccount"},
			says: []string{"until this is corrected: spec.database.urlSecretRef: Secret nowhere", "some of the plan cannot be applied"},
		},
		"a Secret without the label of a pool": {
			pool: s.Pool("new"), flags: []string{"--tenant-require-label", "--tenant-usable=" + s.Namespace + "/circuit"}, wantCode: commandline.ExitFailed,
			want: []string{"ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "ServiceAccount"},
			says: []string{"until this is corrected: spec.database.urlSecretRef: Secret postgres may not be used by this RelayPool"},
		},
		"an image that is not allowed": {
			pool:  s.Pool("new", func(p *v1alpha1.RelayPool) { p.Spec.Image = "evil.example/relay:1" }),
			flags: []string{"--tenant-images=registry.example/relay"}, wantCode: commandline.ExitFailed,
			says: []string{"RelayPool new would not be accepted: spec.image: expected an image of registry.example/relay"},
		},
		"a foreign object": {
			pool: s.Pool("taken"), wantCode: commandline.ExitFailed,
			want: []string{"PodDisruptionBudget", "Service", "ServiceAccount"},
			says: []string{"ConfigMap taken belongs to somebody else", "Deployment taken would be left alone, because its pods would use an object that belongs to somebody else"},
		},
	}
	before := listObjects(t, s)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			code, out, stderr := planWithServer(t, cluster, tc.pool, tc.flags...)
			if code != tc.wantCode {
				t.Errorf("exit code %d, want %d: %s", code, tc.wantCode, stderr)
			}
			if diff := cmp.Diff(tc.want, documents(out)); diff != "" {
				t.Errorf("printed (-want +got):\n%s\n%s", diff, stderr)
			}
			for _, words := range tc.says {
				if !strings.Contains(stderr, words) {
					t.Errorf("%q is not in stderr:\n%s", words, stderr)
				}
			}
		})
	}
	if diff := cmp.Diff(before, listObjects(t, s)); diff != "" {
		t.Errorf("a plan has changed something (-before +after):\n%s", diff)
	}
}

func TestPlanOfAClusterWithoutTheCRD(t *testing.T) {
	server, err := apiserver.Start(t.Context(), apiserver.Options{Log: t.Output(), NoCRDs: true})
	noError(t, err)
	t.Cleanup(func() { noError(t, server.Stop()) })
	cluster, err := server.Config()
	noError(t, err)
	code, _, stderr := command(t, "", "plan", "-f", "testdata/minimal.yaml", "--server", "--kubeconfig="+kubeconfig(t, cluster))
	if code != commandline.ExitFailed || !strings.Contains(stderr, "install it with kubectl apply --server-side -f config/crd") {
		t.Errorf("exit code %d, stderr %q; want 1, and how to install the resource", code, stderr)
	}
}
