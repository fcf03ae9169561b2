package pool

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/refs"
	"github.com/relaypool/relaypool/controllers/internal/tenancy"
)

// strictSettings returns the settings of an operator that does not trust its tenants.
func strictSettings() Settings {
	s := settings()
	s.Tenants = tenancy.Policy{Images: []string{"registry.example/relay"}, Withheld: tenancy.TemplateFields(), RequireLabel: true}
	return s
}

func TestDisallowedSpecsAreNotApplied(t *testing.T) {
	t.Parallel()
	everywhere := []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}}
	tests := map[string]struct {
		change func(*Facts)
		reason string
		parts  []string // of the condition's message
	}{
		"an image that is not allowed": {func(f *Facts) { f.Pool.Spec.Image = "evil.example/mine:1" },
			v1alpha1.ReasonNotAllowed, []string{"spec.image", "expected an image of registry.example/relay", "received evil.example/mine", "omit the field"}},
		"tolerations of the control plane": {func(f *Facts) { f.Pool.Spec.Template.Tolerations = everywhere },
			v1alpha1.ReasonNotAllowed, []string{"spec.template.tolerations", "none of the fields", "remove it"}},
		"a pod template with a foreign image, which is withheld": {func(f *Facts) {
			f.Pool.Spec.Template.PodTemplate = &runtime.RawExtension{Raw: []byte(`{"spec": {"containers": [{"name": "a", "image": "evil.example/mine:1"}]}}`)}
		}, v1alpha1.ReasonNotAllowed, []string{"spec.template.podTemplate", "none of the fields", "remove it"}},
		"a pod template that changes the relay": {func(f *Facts) {
			f.Pool.Spec.Template.PodTemplate = &runtime.RawExtension{Raw: []byte(`{"spec": {"containers": [{"name": "relay", "image": "evil.example/mine:1"}]}}`)}
		}, v1alpha1.ReasonInvalidSpec, []string{"spec.template.podTemplate.spec.containers[relay].image", "set spec.image"}},
		"both are not allowed": {func(f *Facts) {
			f.Pool.Spec.Image, f.Pool.Spec.Template.Tolerations = "evil.example/mine:1", everywhere
		},
			v1alpha1.ReasonNotAllowed, []string{"spec.image", "spec.template.tolerations"}},
		"an image that is not allowed, and an invalid cluster": {func(f *Facts) {
			f.Pool.Spec.Image, f.Pool.Spec.Solana.Cluster = "evil.example/mine:1", "nonsense"
		}, v1alpha1.ReasonInvalidSpec, []string{"spec.image", "spec.solana.cluster"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthyFacts()
			tc.change(f)
			p := Decide(f, strictSettings())
			if p.Deploy || len(p.Objects) > 0 {
				t.Fatalf("%d objects are to be applied, want none", len(p.Objects))
			}
			status := Report(f, &p, &Outcome{})
			for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionReady, v1alpha1.ConditionStalled} {
				c := meta.FindStatusCondition(status.Conditions, kind)
				if c == nil || c.Reason != tc.reason {
					t.Fatalf("%s is %+v, want the reason %s", kind, c, tc.reason)
				}
				for _, part := range tc.parts {
					if !strings.Contains(c.Message, part) {
						t.Errorf("%s says %q, want %q in it", kind, c.Message, part)
					}
				}
			}
			// The running pods stay, and the status counts them.
			if status.ReadyReplicas != 2 {
				t.Errorf("%d replicas are ready, want the 2 running ones", status.ReadyReplicas)
			}
			if _, err := Render(f.Pool, RenderOptions{Settings: strictSettings()}); err == nil || !strings.Contains(err.Error(), tc.parts[0]) {
				t.Errorf("Render returned the error %v, want %s in it", err, tc.parts[0])
			}
			if tc.reason == v1alpha1.ReasonNotAllowed {
				if p := Decide(f, settings()); !p.Deploy {
					t.Errorf("without a policy the faults are %q, want none", p.Faults)
				}
			}
		})
	}
}

// A new policy neither changes nor ends a running fleet that violates it. The violation is
// reported, and nothing is written until the RelayPool complies.
func TestRunningFleetIsKeptWhenAPolicyForbidsIt(t *testing.T) {
	t.Parallel()
	f := healthyFacts()
	if p := Decide(f, settings()); !p.Deploy {
		t.Fatalf("the fleet is not deployed: faults %q, problems %v", p.Faults, p.Problems)
	}
	f.References.Problems = []refs.Problem{{
		Kind: refs.Secret, Name: "postgres", Reason: v1alpha1.ReasonSecretNotUsable, Message: "spec.database.urlSecretRef: Secret postgres may not be used",
	}}
	p := Decide(f, strictSettings())
	if p.Deploy || len(p.Objects) > 0 || p.Withheld || p.Keys.Job != nil {
		t.Errorf("deploy %t, %d objects, withheld %t, Job %v; want nothing to be written", p.Deploy, len(p.Objects), p.Withheld, p.Keys.Job)
	}
	status := Report(f, &p, &Outcome{})
	resolved := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSecretsResolved)
	if resolved.Reason != v1alpha1.ReasonSecretNotUsable || !strings.Contains(resolved.Message, "Secret postgres may not be used") {
		t.Errorf("SecretsResolved is %+v, want SecretNotUsable with the problem's message", resolved)
	}
	if available := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAvailable); available.Reason != v1alpha1.ReasonAvailable {
		t.Errorf("Available is %+v, want the pods to keep serving", available)
	}
}

// Each reason for which an object may not be used is a reason of SecretsResolved.
func TestRefusedObjectsAreReportedBySecretsResolved(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{v1alpha1.ReasonSecretNotUsable, v1alpha1.ReasonConfigMapNotUsable, v1alpha1.ReasonGeneratedKey} {
		if !isSecretsReason(reason) {
			t.Errorf("%s is not a reason of SecretsResolved", reason)
		}
	}
}
