package keys

import (
	"bytes"

	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mr-tron/base58"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/relay/keyfile"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

// errKilled is returned by the operator's last call before it dies.
var errKilled = errors.New("the operator is killed")

// stand is a RelayPool on a real API server, with an operator that has only the real
// operator's permissions for Secrets and Jobs.
type stand struct {
	admin, operator client.WithWatch
	namespace       string
	log             bytes.Buffer
	output          strings.Builder // the operator's other output: facts, plans, errors and status
	pool            *v1alpha1.RelayPool
	rollout         Rollout
	balances        map[string]Balance
	// interrupt is called before and after each write of the operator, and kills it by
	// returning an error.
	interrupt func(written bool) error

	observer *Observer
	writer   *Writer
}

func newStand(t *testing.T) *stand {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &stand{namespace: apiservertest.Namespace(t), rollout: Rollout{Known: true, Complete: true}, balances: map[string]Balance{}}
	var err error
	if s.admin, err = client.NewWithWatch(apiservertest.Config(t), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	user := "operator-of-" + s.namespace
	s.must(t, s.admin.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "operator"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create", "patch"}},
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "delete"}},
	}}))
	s.must(t, s.admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "operator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "operator"},
	}))
	config, err := apiservertest.Server(t).User(user)
	s.must(t, err)
	plain, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	s.must(t, err)
	s.operator = interceptor.NewClient(plain, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return s.write(func() error { return c.Create(ctx, o, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return s.write(func() error { return c.Apply(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return s.write(func() error { return c.Delete(ctx, o, opts...) })
		},
	})
	s.restart(t)
	// The API server's authoriser reads Roles from informers, which may be stale.
	s.eventually(t, "the operator may read Secrets", func() bool {
		err := s.operator.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "none"}, &corev1.Secret{})
		return apierrors.IsNotFound(err)
	})
	return s
}

func (s *stand) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *stand) eventually(t *testing.T, what string, test func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !test(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not true after 20 s: %s", what)
		}
	}
}

func (s *stand) write(do func() error) error {
	if s.interrupt == nil {
		return do()
	}
	if err := s.interrupt(false); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return s.interrupt(true)
}

// restart makes a new operator, without the memory of the last one.
func (s *stand) restart(t *testing.T) {
	t.Helper()
	var err error
	s.observer, err = NewObserver(ObserverOptions{Reader: s.operator, Now: time.Now, Random: func() float64 { return 0.5 }})
	s.must(t, err)
	s.writer, err = NewWriter(WriterOptions{
		Client: s.operator, Random: rand.Reader, Log: slog.New(slog.NewJSONHandler(&s.log, nil)), Observer: s.observer,
	})
	s.must(t, err)
}

// create makes the RelayPool.
func (s *stand) create(t *testing.T, count, revision int32) {
	t.Helper()
	s.pool = &v1alpha1.RelayPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "p"},
		Spec: v1alpha1.RelayPoolSpec{
			Pool: v1alpha1.Pool{
				Profile:                  v1alpha1.Profile{Name: "shield-pool-v1"},
				VerifyingKeyConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "vk", Key: "verification_key.json"},
			},
			Solana:      v1alpha1.Solana{Cluster: "devnet", Endpoints: []v1alpha1.Endpoint{{Name: "a", URL: "https://rpc.example"}}},
			Database:    v1alpha1.Database{URLSecretRef: v1alpha1.SecretKeyReference{Name: "db", Key: "url"}},
			FeePayers:   v1alpha1.FeePayers{Generate: &v1alpha1.GeneratedKeys{Count: count}},
			ViewingKeys: v1alpha1.ViewingKeys{CompliancePublicKey: strings.Repeat("ab", 32)},
		},
	}
	if revision > 0 {
		s.pool.Spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: revision}
	}
	s.must(t, s.admin.Create(t.Context(), s.pool))
}

// pass runs one pass of the operator.
func (s *stand) pass(t *testing.T) (Plan, error) {
	t.Helper()
	ctx := t.Context()
	facts, err := s.observer.Observe(ctx, s.pool)
	if err != nil {
		return Plan{}, err
	}
	var jobs batchv1.JobList
	s.must(t, s.admin.List(ctx, &jobs, client.InNamespace(s.namespace)))
	in := Input{Pool: s.pool, Keys: facts, Rollout: s.rollout, Balances: s.balances, Now: time.Now()}
	for i := range jobs.Items {
		in.Jobs = append(in.Jobs, JobOf(s.pool, &jobs.Items[i], ""))
	}
	plan := Decide(in)
	fmt.Fprintf(&s.output, "%+v\n%+v\n", facts, plan)
	var job runtime.ApplyConfiguration
	if j := plan.Job; j != nil {
		job = build.RotationJob(build.Input{Pool: s.pool, Image: "relay:test"}, build.Rotation{
			Step: build.Step(strings.ToLower(string(j.Step))), Revision: j.Revision, From: payerMounts(j.From), To: payerMounts(j.To),
		}).Config
	}
	err = s.writer.Apply(ctx, s.pool, plan, job)
	if err != nil {
		fmt.Fprintf(&s.output, "%v\n%+v\n", err, err)
		return plan, err
	}
	if !plan.Writes() { // the Deployment is updated at once
		s.rollout.Template = nil
		for _, m := range plan.Mounted {
			s.rollout.Template = append(s.rollout.Template, m.Secret)
		}
		s.rollout.Pods = s.rollout.Template
	}
	s.pool.Status.FeePayers, s.pool.Status.Rotation = plan.Payers, plan.Rotation
	status, err := json.Marshal(s.pool.Status)
	s.must(t, err)
	s.output.Write(status)
	return plan, nil
}

func payerMounts(all []Mount) []build.PayerMount {
	var out []build.PayerMount
	for _, m := range all {
		out = append(out, build.PayerMount(m))
	}
	return out
}

// finishJobs ends every Job successfully.
func (s *stand) finishJobs(t *testing.T) {
	t.Helper()
	var jobs batchv1.JobList
	s.must(t, s.admin.List(t.Context(), &jobs, client.InNamespace(s.namespace)))
	for i := range jobs.Items {
		j := &jobs.Items[i]
		if len(j.Status.Conditions) > 0 {
			continue
		}
		now := metav1.Now()
		j.Status.StartTime, j.Status.CompletionTime, j.Status.Succeeded = &now, &now, 1
		for _, condition := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		s.must(t, s.admin.Status().Update(t.Context(), j))
	}
}

// runToEnd runs passes until the keys are in their wanted state.
func (s *stand) runToEnd(t *testing.T) Plan {
	t.Helper()
	for range 60 {
		plan, err := s.pass(t)
		if errors.Is(err, errKilled) {
			s.restart(t)
			continue
		}
		s.must(t, err)
		if !plan.Writes() && !plan.Rotating {
			return plan
		}
		s.finishJobs(t)
	}
	t.Fatal("the keys were not in their wanted state after 60 passes")
	return Plan{}
}

// secrets returns the generated keys' Secrets by name.
func (s *stand) secrets(t *testing.T) map[string]corev1.Secret {
	t.Helper()
	var list corev1.SecretList
	s.must(t, s.admin.List(t.Context(), &list, client.InNamespace(s.namespace)))
	all := map[string]corev1.Secret{}
	for _, secret := range list.Items {
		all[secret.Name] = secret
	}
	return all
}

// states returns the states of the keys, by the names of their Secrets.
func (s *stand) states(t *testing.T) map[string]string {
	t.Helper()
	states := map[string]string{}
	for name, secret := range s.secrets(t) {
		states[name] = secret.Labels[LabelState]
	}
	return states
}

// checkNoPrivateKeys fails if any output or stored object contains a private key in a usual
// form. The values of Secrets do not count.
func (s *stand) checkNoPrivateKeys(t *testing.T) {
	t.Helper()
	text := s.log.String() + s.output.String()
	secrets := s.secrets(t)
	var jobs batchv1.JobList
	s.must(t, s.admin.List(t.Context(), &jobs, client.InNamespace(s.namespace)))
	for _, secret := range secrets {
		metadata, err := json.Marshal(secret.ObjectMeta)
		s.must(t, err)
		text += string(metadata)
	}
	encoded, err := json.Marshal(jobs)
	s.must(t, err)
	text += string(encoded)
	if len(text) < 1000 {
		t.Fatalf("the output has only %d characters: the test would check nothing", len(text))
	}
	lower := strings.ToLower(text)
	for name, secret := range secrets {
		private, err := keyfile.Parse(secret.Data[DataKey])
		s.must(t, err)
		if !strings.Contains(text, keyfile.Address(private)) {
			t.Errorf("the address of %s is not in the output: the test would check nothing", name)
		}
		seed := private.Seed()
		for form, shown := range map[string]bool{
			"base58":         strings.Contains(text, base58.Encode(private)[:20]),
			"base58, seed":   strings.Contains(text, base58.Encode(seed)),
			"base64":         strings.Contains(text, base64.StdEncoding.EncodeToString(secret.Data[DataKey])[:20]),
			"hexadecimal":    strings.Contains(lower, hex.EncodeToString(seed[:8])),
			"JSON":           strings.Contains(text, strings.Trim(string(secret.Data[DataKey])[:20], "[")),
			"Go's printing":  strings.Contains(text, strings.Trim(fmt.Sprintf("%d", seed[:6]), "[]")),
			"base64 of seed": strings.Contains(text, base64.StdEncoding.EncodeToString(seed)[:20]),
		} {
			if shown {
				t.Errorf("the private key in %s appears in the output, as %s", name, form)
			}
		}
	}
}

func TestKeysAreMadeOnceAndKept(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.create(t, 2, 0)
	plan := s.runToEnd(t)
	if len(plan.Payers) != 2 || len(plan.Mounted) != 2 {
		t.Fatalf("payers are %v, want two in use", plan.Payers)
	}
	for name, secret := range s.secrets(t) {
		private, err := keyfile.Parse(secret.Data[DataKey])
		s.must(t, err)
		if secret.Immutable == nil || !*secret.Immutable || len(secret.OwnerReferences) > 0 || len(secret.Finalizers) > 0 {
			t.Errorf("Secret %s is not immutable, or has an owner or finalizer", name)
		}
		if got, want := secret.Annotations[AnnotationAddress], keyfile.Address(private); got != want {
			t.Errorf("Secret %s has the address annotation %s, want %s", name, got, want)
		}
		secret.Data[DataKey] = []byte("[]")
		if err := s.admin.Update(t.Context(), &secret); !apierrors.IsInvalid(err) {
			t.Errorf("overwriting Secret %s returns %v, want Invalid", name, err)
		}
	}
	before := s.secrets(t)
	s.restart(t)
	if again := s.runToEnd(t); !slices.EqualFunc(plan.Payers, again.Payers, func(a, b v1alpha1.FeePayerStatus) bool { return a.Address == b.Address }) {
		t.Errorf("after a restart payers are %v, want %v", again.Payers, plan.Payers)
	}
	if diff := cmp.Diff(versions(before), versions(s.secrets(t))); diff != "" {
		t.Errorf("a pass without changes wrote (-before +after):\n%s", diff)
	}
	s.checkNoPrivateKeys(t)
}

func versions(secrets map[string]corev1.Secret) map[string]string {
	all := map[string]string{}
	for name, secret := range secrets {
		all[name] = secret.ResourceVersion
	}
	return all
}

// TestRotationSurvivesOperatorDeathAtAnyWrite rotates twice for each write of a rotation.
// In one rotation the operator is killed before the write. In the other it is killed after
// the API server has executed the write, but before the operator has the answer.
func TestRotationSurvivesOperatorDeathAtAnyWrite(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for at := 0; ; at++ {
			s := newStand(t)
			writes, killed := 0, false
			s.interrupt = func(written bool) error {
				if written != after {
					return nil
				}
				writes++
				if writes == at+1 {
					killed = true
					return errKilled
				}
				return nil
			}
			s.create(t, 2, 0)
			first := s.runToEnd(t)
			s.pool.Spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: 1}
			s.must(t, s.admin.Update(t.Context(), s.pool))
			last := s.runToEnd(t)
			want := map[string]string{"p-payer-0-0": "retired", "p-payer-0-1": "retired", "p-payer-1-0": "active", "p-payer-1-1": "active"}
			if diff := cmp.Diff(want, s.states(t)); diff != "" {
				t.Fatalf("killed at write %d (after its execution: %t), states of the keys (-want +got):\n%s", at, after, diff)
			}
			for _, p := range first.Payers {
				if !slices.ContainsFunc(last.Payers, func(l v1alpha1.FeePayerStatus) bool {
					return l.Address == p.Address && l.SecretName == p.SecretName && l.State == v1alpha1.PayerRetired
				}) {
					t.Errorf("killed at write %d (after its execution: %t), the key of %s has changed", at, after, p.Address)
				}
			}
			s.checkNoPrivateKeys(t)
			if !killed {
				if at < 13 { // 4 Secrets, 3 Jobs, 2 × 2 labels of the old keys, 2 of the new
					t.Errorf("a rotation took %d writes, want 13 at least", writes)
				}
				break
			}
		}
	}
}

func TestANewRelayPoolAdoptsTheKeysOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.create(t, 1, 0)
	first := s.runToEnd(t)
	made := s.secrets(t)["p-payer-0-0"].CreationTimestamp
	s.eventually(t, "the new RelayPool is younger than the key, by the second", func() bool {
		s.must(t, s.admin.Delete(t.Context(), s.pool))
		s.create(t, 1, 0)
		return made.Before(&s.pool.CreationTimestamp)
	})
	plan, err := s.pass(t)
	s.must(t, err)
	if len(plan.Payers) != 1 || plan.Payers[0].Address != first.Payers[0].Address || plan.Writes() {
		t.Errorf("payers are %v, want %v and nothing written", plan.Payers, first.Payers)
	}
	if len(plan.Events) != 1 || plan.Events[0].Reason != v1alpha1.EventKeyAdopted {
		t.Errorf("events are %v, want one KeyAdopted", plan.Events)
	}
}

func TestKeysOfLowerAndHigherRevisionsAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ made, wanted int32 }{
		"a spec that starts again from revision 0": {made: 2, wanted: 0},
		"a spec with a much higher revision":       {made: 1, wanted: 4},
		"a spec with the same revision":            {made: 3, wanted: 3},
		"a spec with the revision below":           {made: 1, wanted: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			s.pool = &v1alpha1.RelayPool{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "p"}}
			// Revisions follow one another without gaps.
			for r := range test.made + 1 {
				state := v1alpha1.PayerRetired
				if r == test.made {
					state = v1alpha1.PayerActive
				}
				s.must(t, s.writer.create(t.Context(), s.pool, NewKey{Secret: SecretName("p", r, 0), Revision: r, State: state}))
			}
			s.create(t, 1, test.wanted)
			facts, err := s.observer.Observe(t.Context(), s.pool)
			s.must(t, err)
			if len(facts.Keys) != int(test.made)+1 {
				t.Errorf("%d keys are found, want %d", len(facts.Keys), test.made+1)
			}
			if plan := Decide(Input{Pool: s.pool, Keys: facts}); len(plan.Mounted) != 1 || plan.Mounted[0].Secret != SecretName("p", test.made, 0) {
				t.Errorf("%v is used, want the key of revision %d", plan.Mounted, test.made)
			}
		})
	}
}

func TestAForeignSecretIsNotChanged(t *testing.T) {
	t.Parallel()
	immutable := true
	private, err := keyfile.Generate(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := labels("p", NewKey{State: v1alpha1.PayerActive})
	withLabel := func(label, value string) map[string]string {
		l := labels("p", NewKey{State: v1alpha1.PayerActive})
		l[label] = value
		return l
	}
	tests := map[string]struct {
		secret corev1.Secret
		fault  string
	}{
		"no labels":                      {corev1.Secret{Immutable: &immutable}, "its labels"},
		"the label of another RelayPool": {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: withLabel(LabelPool, "q")}, Immutable: &immutable}, "its labels"},
		"the label of another index":     {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: withLabel(LabelIndex, "7")}, Immutable: &immutable}, "its labels"},
		"no state":                       {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: withLabel(LabelState, "busy")}, Immutable: &immutable}, LabelState},
		"a Secret that is not immutable": {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: good}, Data: map[string][]byte{DataKey: keyfile.Format(private)}}, "not immutable"},
		"no key":                         {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: good}, Immutable: &immutable}, "has no key key"},
		"a malformed key":                {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: good}, Immutable: &immutable, Data: map[string][]byte{DataKey: []byte("[167,60,canary]")}}, "not a fee payer key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			secret := test.secret.DeepCopy()
			secret.Namespace, secret.Name = s.namespace, "p-payer-0-0"
			s.must(t, s.admin.Create(t.Context(), secret))
			s.create(t, 2, 0)
			plan := s.runToEnd(t)
			if len(plan.Mounted) != 1 || plan.Mounted[0].Secret != "p-payer-0-1" {
				t.Errorf("%v is used, want the other key alone", plan.Mounted)
			}
			if len(plan.Problems) != 1 || plan.Problems[0].Reason != v1alpha1.ReasonSecretForeign || !strings.Contains(plan.Problems[0].Message, test.fault) {
				t.Errorf("problems are %v, want SecretForeign with %q", plan.Problems, test.fault)
			}
			if got := s.secrets(t)["p-payer-0-0"]; got.ResourceVersion != secret.ResourceVersion {
				t.Error("the Secret was changed")
			}
			if strings.Contains(s.log.String()+s.output.String(), "canary") {
				t.Error("the Secret's value appears in the output")
			}
		})
	}
}

func TestTwoOperatorsMakeOneSetOfKeys(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.create(t, 4, 0)
	facts, err := s.observer.Observe(t.Context(), s.pool)
	s.must(t, err)
	plan := Decide(Input{Pool: s.pool, Keys: facts})
	var group sync.WaitGroup
	failures := make(chan error, 2)
	for range 2 {
		observer, err := NewObserver(s.observer.ObserverOptions)
		s.must(t, err)
		writer, err := NewWriter(WriterOptions{Client: s.operator, Random: rand.Reader, Log: slog.New(slog.DiscardHandler), Observer: observer})
		s.must(t, err)
		group.Go(func() { failures <- writer.Apply(t.Context(), s.pool, plan, nil) })
	}
	group.Wait()
	for range 2 {
		s.must(t, <-failures)
	}
	s.observer.Invalidate(client.ObjectKeyFromObject(s.pool))
	facts, err = s.observer.Observe(t.Context(), s.pool)
	s.must(t, err)
	if len(facts.Keys) != 4 || len(facts.Problems) > 0 {
		t.Errorf("there are %d keys and problems %v, want 4 and none", len(facts.Keys), facts.Problems)
	}
}

func TestLabelIsWrittenOnlyToTheSecretThatWasRead(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*stand, *testing.T, *corev1.Secret){
		"the Secret was changed": func(s *stand, t *testing.T, secret *corev1.Secret) {
			secret.Labels["mine"] = "yes"
			s.must(t, s.admin.Update(t.Context(), secret))
		},
		"the Secret was deleted": func(s *stand, t *testing.T, secret *corev1.Secret) { s.must(t, s.admin.Delete(t.Context(), secret)) },
		"the Secret was deleted and recreated": func(s *stand, t *testing.T, secret *corev1.Secret) {
			s.must(t, s.admin.Delete(t.Context(), secret))
			again := secret.DeepCopy()
			again.ResourceVersion, again.UID = "", ""
			s.must(t, s.admin.Create(t.Context(), again))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			s.create(t, 1, 0)
			s.runToEnd(t)
			facts, err := s.observer.Observe(t.Context(), s.pool)
			s.must(t, err)
			secret := s.secrets(t)["p-payer-0-0"]
			change(s, t, &secret)
			before := s.secrets(t)
			err = s.writer.Apply(t.Context(), s.pool, Plan{Label: []LabelChange{{Key: facts.Keys[0], State: v1alpha1.PayerDraining}}}, nil)
			if !apierrors.IsConflict(err) {
				t.Errorf("error is %v, want a conflict", err)
			}
			if diff := cmp.Diff(versions(before), versions(s.secrets(t))); diff != "" {
				t.Errorf("versions of the Secrets (-before +after):\n%s", diff)
			}
		})
	}
}

func TestUnreadableKeyDoesNotCountAsMissing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.create(t, 2, 0)
	s.runToEnd(t)
	failing := interceptor.NewClient(s.operator, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, name client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if name.Name == "p-payer-0-1" {
				return apierrors.NewServerTimeout(corev1.Resource("secrets"), "get", 1)
			}
			return c.Get(ctx, name, o, opts...)
		},
	})
	observer, err := NewObserver(ObserverOptions{Reader: failing, Now: time.Now, Random: func() float64 { return 0 }})
	s.must(t, err)
	if facts, err := observer.Observe(t.Context(), s.pool); !apierrors.IsServerTimeout(err) || len(facts.Keys) > 0 {
		t.Errorf("with an unreadable Secret, keys are %v, error %v; want none, and a timeout", facts.Keys, err)
	}
}

func TestRunningJobIsReplacedWhenItsSpecChanges(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.create(t, 1, 0)
	s.runToEnd(t)
	s.pool.Spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: 1}
	s.must(t, s.admin.Update(t.Context(), s.pool))
	job := func() *batchv1.Job {
		var jobs batchv1.JobList
		s.must(t, s.admin.List(t.Context(), &jobs, client.InNamespace(s.namespace)))
		if len(jobs.Items) == 0 {
			return nil
		}
		return &jobs.Items[0]
	}
	runPasses := func(n int) {
		for range n {
			_, err := s.pass(t)
			s.must(t, err)
		}
	}
	runPasses(2) // the keys, the Job
	first := job()
	runPasses(2)
	if again := job(); first == nil || again == nil || again.UID != first.UID || again.ResourceVersion != first.ResourceVersion {
		t.Fatalf("the Job was recreated, or never made: %v", first)
	}
	if !metav1.IsControlledBy(first, s.pool) {
		t.Error("the Job is not controlled by the RelayPool")
	}
	s.pool.Spec.Solana.Endpoints[0].Name = "b"
	runPasses(2) // the old Job is deleted, the new Job is made
	if again := job(); again == nil || again.UID == first.UID {
		t.Error("the Job still runs with the former spec")
	}
	s.finishJobs(t)
	done := job()
	s.pool.Spec.Solana.Endpoints[0].Name = "c"
	s.runToEnd(t)
	var kept batchv1.Job
	s.must(t, s.admin.Get(t.Context(), client.ObjectKeyFromObject(done), &kept))
	if kept.UID != done.UID {
		t.Error("a complete Job was recreated because the spec changed")
	}
}

func TestConstructorsRefuseMissingOptions(t *testing.T) {
	t.Parallel()
	if _, err := NewObserver(ObserverOptions{}); err == nil {
		t.Error("an observer without a reader is made")
	}
	if _, err := NewWriter(WriterOptions{}); err == nil {
		t.Error("a writer without a client is made")
	}
	s := newStand(t)
	o := s.observer.ObserverOptions
	o.Interval = -1
	if _, err := NewObserver(o); err == nil {
		t.Error("an observer with an interval below 0 is made")
	}
}

func TestWhenKeysAreReadAgain(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.create(t, 2, 0)
	s.runToEnd(t)
	now, gets := time.Unix(1e9, 0), 0
	counting := interceptor.NewClient(s.operator, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, name client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			gets++
			return c.Get(ctx, name, o, opts...)
		},
	})
	observer, err := NewObserver(ObserverOptions{Reader: counting, Now: func() time.Time { return now }, Random: func() float64 { return 0.5 }})
	s.must(t, err)
	observe := func() (Facts, int) {
		t.Helper()
		before := gets
		facts, err := observer.Observe(t.Context(), s.pool)
		s.must(t, err)
		if len(facts.Keys) != 2 {
			t.Errorf("%d keys are found, want 2", len(facts.Keys))
		}
		return facts, gets - before
	}
	first, n := observe()
	if n > 4 { // two keys, the third that would follow, and the revision above
		t.Errorf("a reading takes %d gets, want 4 at most", n)
	}
	if got := first.Next.Sub(now); got != DefaultInterval {
		t.Errorf("the next reading is due in %s, want %s", got, DefaultInterval)
	}
	// A person who acknowledges a copy does not wait long for it to be noticed.
	s.pool.Spec.FeePayers.Generate.Backup, s.pool.Generation = &v1alpha1.KeyBackup{}, s.pool.Generation+1
	if facts, _ := observe(); facts.Next.Sub(now) != DefaultInterval/problemFactor {
		t.Errorf("the next reading is due in %s while no copy is acknowledged, want %s", facts.Next.Sub(now), DefaultInterval/problemFactor)
	}
	s.pool.Spec.FeePayers.Generate.Backup, s.pool.Generation = nil, s.pool.Generation+1
	observe()
	for what, test := range map[string]struct {
		change func()
		reads  bool
	}{
		"nothing happened":               {func() {}, false},
		"something was written":          {func() { observer.Invalidate(client.ObjectKeyFromObject(s.pool)) }, true},
		"the spec changed":               {func() { s.pool.Generation++ }, true},
		"the interval is over":           {func() { now = now.Add(DefaultInterval) }, true},
		"the RelayPool was deleted":      {func() { observer.Forget(client.ObjectKeyFromObject(s.pool)) }, true},
		"another RelayPool has its name": {func() { s.pool.UID += "x" }, true},
		"still nothing happened":         {func() {}, false},
	} {
		test.change()
		if _, n := observe(); (n > 0) != test.reads {
			t.Errorf("after %q: %d gets; gets are expected: %t", what, n, test.reads)
		}
	}
}
