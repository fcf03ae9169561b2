package pool_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/controllers/internal/tenancy"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// A tenant who may only make RelayPools tries to mount foreign Secrets into an image of
// their own, on nodes that are not for them. A fleet is made only if all objects that it
// uses have the label that allows this. If a label is removed later, the fleet keeps
// running.
func TestATenantCannotMountForeignSecrets(t *testing.T) {
	t.Parallel()
	s := pooltest.NewStand(t, apiservertest.Config(t))
	pooltest.StartKubelet(t, s.Config, s.Namespace, pooltest.KubeletOptions{})
	pooltest.StartOperator(t, s.Config, pooltest.OperatorOptions{
		Namespaces: []string{s.Namespace},
		Tenants:    tenancy.Policy{Images: []string{"relaypool.test/relay"}, Withheld: tenancy.TemplateFields(), RequireLabel: true},
	})
	if err := s.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	s.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "administrator"}, StringData: map[string]string{"password": "of somebody else"}})
	setUsableBy := func(object client.Object, name, by string) {
		t.Helper()
		pooltest.Change(t, s, name, object, func(o client.Object) { o.SetLabels(map[string]string{v1alpha1.LabelUsableBy: by}) })
	}

	s.Create(t, s.Pool("demo"))
	refused := s.Await(t, "demo", v1alpha1.ConditionSecretsResolved, "False/ConfigMapNotUsable")
	for _, part := range []string{"ConfigMap circuit", "Secret postgres", v1alpha1.LabelUsableBy, "received none"} {
		if !strings.Contains(refused.Message, part) {
			t.Errorf("the condition says %q, want %q in it", refused.Message, part)
		}
	}
	checkNothingDeployed(t, s, "demo")
	setUsableBy(&corev1.ConfigMap{}, "circuit", v1alpha1.UsableByAny)
	setUsableBy(&corev1.Secret{}, "postgres", "demo")
	s.Await(t, "demo", v1alpha1.ConditionAvailable, "True/Available")

	// This is the attack: the tenant's image, on any node, with a foreign Secret.
	s.Create(t, s.Pool("evil", func(p *v1alpha1.RelayPool) {
		p.Spec.Image = "evil.example/relay:1"
		p.Spec.Template.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		p.Spec.Database.URLSecretRef = v1alpha1.SecretKeyReference{Name: "administrator", Key: "password"}
		p.Spec.FeePayers = v1alpha1.FeePayers{SecretRefs: []v1alpha1.SecretKeyReference{{Name: keys.SecretName("demo", 0, 0), Key: keys.DataKey}}}
	}))
	refused = s.Await(t, "evil", v1alpha1.ConditionAccepted, "False/NotAllowed")
	for _, part := range []string{"spec.image", "evil.example/relay", "spec.template.tolerations"} {
		if !strings.Contains(refused.Message, part) {
			t.Errorf("the condition says %q, want %q in it", refused.Message, part)
		}
	}
	// The image is corrected and the Secret has the label, but the fee payer is still a key
	// of another RelayPool.
	setUsableBy(&corev1.Secret{}, "administrator", "evil")
	pooltest.Change(t, s, "administrator", &corev1.Secret{}, func(o *corev1.Secret) { o.Data["password"] = []byte("postgres://127.0.0.1/evil") })
	pooltest.Change(t, s, "evil", &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) { p.Spec.Image, p.Spec.Template.Tolerations = "", nil })
	refused = s.Await(t, "evil", v1alpha1.ConditionSecretsResolved, "False/GeneratedKey")
	if !strings.Contains(refused.Message, "a generated fee payer key of RelayPool demo") {
		t.Errorf("the condition says %q, want the name of the RelayPool that has the key", refused.Message)
	}
	checkNothingDeployed(t, s, "evil")

	// Removing a label does not change the running fleet, but blocks later changes.
	var before, after appsv1.Deployment
	s.Get(t, "demo", &before)
	setUsableBy(&corev1.Secret{}, "postgres", "another")
	s.Await(t, "demo", v1alpha1.ConditionSecretsResolved, "False/SecretNotUsable")
	pooltest.Change(t, s, "demo", &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) { p.Spec.Replicas = ptr.To[int32](3) })
	s.Await(t, "demo", v1alpha1.ConditionSecretsResolved, "False/SecretNotUsable")
	s.Await(t, "demo", v1alpha1.ConditionAvailable, "True/Available")
	s.Get(t, "demo", &after)
	if after.Generation != before.Generation || after.UID != before.UID {
		t.Errorf("the Deployment was changed from generation %d to %d, or recreated", before.Generation, after.Generation)
	}
	setUsableBy(&corev1.Secret{}, "postgres", "demo")
	s.Await(t, "demo", v1alpha1.ConditionSecretsResolved, "True/Resolved")
	pooltest.Eventually(t, "the change is applied", func() error {
		return asDeclared(t, s, "demo", 3)
	})
}

// checkNothingDeployed checks that neither a Deployment nor a Job was made, which could
// mount a Secret.
func checkNothingDeployed(t *testing.T, s *pooltest.Stand, name string) {
	t.Helper()
	err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, &appsv1.Deployment{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("reading the Deployment of %s returned error %v, want NotFound", name, err)
	}
	var jobs batchv1.JobList
	if err := s.Client.List(t.Context(), &jobs, client.InNamespace(s.Namespace)); err != nil || len(jobs.Items) > 0 {
		t.Errorf("there are %d Jobs, error %v; want none", len(jobs.Items), err)
	}
}
