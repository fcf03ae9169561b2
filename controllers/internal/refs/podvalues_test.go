package refs

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/tenancy"
)

func TestObjectsOfThePodTemplate(t *testing.T) {
	t.Parallel()
	usable := []string{"n/db", "n/rpc", "n/router", "n/api", "n/payers", "n/vk", "n/profile"}
	const at = "spec.template.podTemplate.spec."
	const optional = "does not exist, and optional does not count here, because pods would also get an object that is not for them and appears later: create it, or remove the reference"
	const variables = "has a key that begins with RELAYPOOL_, which would set the relay's own variables: set fields of the RelayPool instead, and remove the key"
	const (
		secretVolume      = `{"volumes": [{"name": "v", "secret": {"secretName": "x"}}]}`
		optionalConfigMap = `{"volumes": [{"name": "v", "configMap": {"name": "x", "optional": true}}]}`
	)
	tests := map[string]struct {
		spec   string // in JSON
		key    string // of the Secret, which does not exist if it is empty
		labels map[string]string
		policy tenancy.Policy
		// wantProblems are reasons. wantReplaces: a change of the object replaces the pods.
		wantProblems []string
		wantMessage  string
		wantReplaces bool
	}{
		"a Secret that does not exist": {
			spec: secretVolume, wantProblems: []string{v1alpha1.ReasonSecretNotFound}, wantMessage: at + "volumes[v].secret: Secret x does not exist: create it, or name another",
		},
		"a Secret that may appear later": {
			spec:         `{"volumes": [{"name": "v", "secret": {"secretName": "x", "optional": true}}]}`,
			wantProblems: []string{v1alpha1.ReasonSecretNotFound}, wantMessage: at + "volumes[v].secret: Secret x " + optional,
		},
		"a ConfigMap that need not exist": {spec: optionalConfigMap},
		"a ConfigMap that may appear later without the label that is required": {
			spec: optionalConfigMap, policy: tenancy.Policy{RequireLabel: true, Usable: usable},
			wantProblems: []string{v1alpha1.ReasonConfigMapNotFound}, wantMessage: at + "volumes[v].configMap: ConfigMap x " + optional,
		},
		"a file, which the kubelet keeps up to date":  {spec: secretVolume, key: "any"},
		"a variable, which is read at the start":      {spec: `{"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "x"}}]}]}`, key: "any", wantReplaces: true},
		"a pull secret, which only the kubelet reads": {spec: `{"imagePullSecrets": [{"name": "x"}]}`},
		"a generated key of this RelayPool": {
			spec: secretVolume, key: "any", labels: map[string]string{build.LabelPool: "p", build.LabelPayerState: "active"},
			wantProblems: []string{v1alpha1.ReasonGeneratedKey}, wantMessage: at + "volumes[v].secret: Secret x is a generated fee payer key, which may be used only as a fee payer's key: name another Secret",
		},
		"variables of the relay, by the names of keys": {
			spec: `{"containers": [{"name": "relay", "envFrom": [{"secretRef": {"name": "x"}}]}]}`, key: "RELAYPOOL_LISTEN", wantReplaces: true,
			wantProblems: []string{v1alpha1.ReasonSecretMalformed}, wantMessage: at + "containers[relay].envFrom[0].secretRef: Secret x " + variables,
		},
		"the same keys for another container": {
			spec: `{"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "x"}}]}]}`, key: "RELAYPOOL_LISTEN", wantReplaces: true,
		},
		"the same keys with a prefix": {
			spec: `{"containers": [{"name": "relay", "envFrom": [{"prefix": "APP_", "secretRef": {"name": "x"}}]}]}`, key: "RELAYPOOL_LISTEN", wantReplaces: true,
		},
		"another key for a variable": {
			spec: `{"containers": [{"name": "relay", "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "x", "key": "RELAYPOOL_LISTEN"}}}]}]}`, key: "RELAYPOOL_LISTEN", wantReplaces: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			s.pool.Spec.Template.PodTemplate = &runtime.RawExtension{Raw: []byte(`{"spec": ` + tc.spec + `}`)}
			s.resolver.Policy = tc.policy
			if tc.key != "" {
				s.reader.secrets["x"] = map[string][]byte{tc.key: []byte(canary)}
				s.reader.labels = map[string]map[string]string{"x": tc.labels}
			}
			facts := s.resolve(t)
			var reasons []string
			for _, p := range facts.Problems {
				reasons = append(reasons, p.Reason)
				if p.Message != tc.wantMessage {
					t.Errorf("the message is %q, want %q", p.Message, tc.wantMessage)
				}
			}
			if diff := cmp.Diff(tc.wantProblems, reasons); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if got := slices.ContainsFunc(facts.Resolved, func(o Object) bool { return o.Name == "x" }); got != tc.wantReplaces {
				t.Errorf("a change replaces the pods: %t, want %t", got, tc.wantReplaces)
			}
		})
	}
}
