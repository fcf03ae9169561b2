package refs

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

func TestObjectsOfThePodTemplate(t *testing.T) {
	t.Parallel()
	const at = "spec.template.podTemplate.spec."
	tests := map[string]struct {
		spec   string // in JSON
		exists bool
		labels map[string]string
		// wantProblems are reasons. wantReplaces: a change of the object replaces the pods.
		wantProblems []string
		wantMessage  string
		wantReplaces bool
	}{
		"a Secret that does not exist":                {`{"volumes": [{"name": "v", "secret": {"secretName": "x"}}]}`, false, nil, []string{v1alpha1.ReasonSecretNotFound}, at + "volumes[v].secret: Secret x does not exist: create it, or name another", false},
		"a Secret that may appear later":              {`{"volumes": [{"name": "v", "secret": {"secretName": "x", "optional": true}}]}`, false, nil, []string{v1alpha1.ReasonSecretNotFound}, at + "volumes[v].secret: Secret x does not exist: create it, or name another", false},
		"a ConfigMap that need not exist":             {`{"volumes": [{"name": "v", "configMap": {"name": "x", "optional": true}}]}`, false, nil, nil, "", false},
		"a file, which the kubelet keeps up to date":  {`{"volumes": [{"name": "v", "secret": {"secretName": "x"}}]}`, true, nil, nil, "", false},
		"a variable, which is read at the start":      {`{"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "x"}}]}]}`, true, nil, nil, "", true},
		"a generated key of this RelayPool":           {`{"volumes": [{"name": "v", "secret": {"secretName": "x"}}]}`, true, map[string]string{build.LabelPool: "p", build.LabelPayerState: "active"}, []string{v1alpha1.ReasonGeneratedKey}, at + "volumes[v].secret: Secret x is a generated fee payer key, which may be used only as a fee payer's key: name another Secret", false},
		"a pull secret, which only the kubelet reads": {`{"imagePullSecrets": [{"name": "x"}]}`, false, nil, nil, "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			s.pool.Spec.Template.PodTemplate = &runtime.RawExtension{Raw: []byte(`{"spec": ` + tc.spec + `}`)}
			if tc.exists {
				s.reader.secrets["x"] = map[string][]byte{"any": []byte(canary)}
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
