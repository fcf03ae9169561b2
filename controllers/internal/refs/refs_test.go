package refs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/tenancy"
	"github.com/relaypool/relaypool/relay/keyfile"
)

// canary is in every value, and must appear nowhere else.
const canary = "CANARY"

// fakeReader has the content of an API server. It implements only Get.
type fakeReader struct {
	client.Reader
	mu      sync.Mutex
	secrets map[string]map[string][]byte
	configs map[string]map[string]string
	labels  map[string]map[string]string
	fails   map[string]error
	gets    int
	version int
}

func (s *fakeReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	if err := s.fails[key.Name]; err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace, UID: types.UID("uid-" + key.Name), ResourceVersion: fmt.Sprint(s.version), Labels: s.labels[key.Name]}
	switch o := into.(type) {
	case *corev1.Secret:
		data, ok := s.secrets[key.Name]
		if !ok {
			return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
		}
		o.ObjectMeta, o.Data = meta, map[string][]byte{}
		for k, v := range data {
			o.Data[k] = append([]byte(nil), v...)
		}
	case *corev1.ConfigMap:
		data, ok := s.configs[key.Name]
		if !ok {
			return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
		}
		o.ObjectMeta, o.Data = meta, data
	default:
		return fmt.Errorf("unexpected type %T", into)
	}
	return nil
}

type stand struct {
	reader   *fakeReader
	pool     *v1alpha1.RelayPool
	now      time.Time
	resolver *Resolver
	keys     []string // the contents of two fee payers' keys
	payers   []string // the addresses of these keys
}

// newStand returns a stand with every object that a RelayPool can name, all valid.
func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{now: time.Unix(1e9, 0)}
	for range 2 {
		private, err := keyfile.Generate(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		s.keys, s.payers = append(s.keys, string(keyfile.Format(private))), append(s.payers, keyfile.Address(private))
	}
	s.reader = &fakeReader{
		version: 1, fails: map[string]error{},
		secrets: map[string]map[string][]byte{
			"db":     {"url": []byte("postgres://u:" + canary + "@db.example:5432/relay\n")},
			"rpc":    {"url": []byte("https://rpc.example/" + canary)},
			"router": {"url": []byte("https://router.example/" + canary), "key": []byte(canary)},
			"api":    {"keys": []byte(canary + "\n")},
			"payers": {"a": []byte(s.keys[0]), "b": []byte(s.keys[1])},
		},
		configs: map[string]map[string]string{
			"vk": {"vk.json": `{"protocol": "groth16"}`}, "profile": {"profile.yaml": "base: shield-pool-v1\n"},
		},
	}
	s.pool = &v1alpha1.RelayPool{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u", Generation: 1}}
	spec := &s.pool.Spec
	spec.Pool.VerifyingKeyConfigMapRef = v1alpha1.ConfigMapKeyReference{Name: "vk", Key: "vk.json"}
	spec.Pool.Profile.ConfigMapRef = &v1alpha1.ConfigMapKeyReference{Name: "profile", Key: "profile.yaml"}
	spec.Database.URLSecretRef = v1alpha1.SecretKeyReference{Name: "db", Key: "url"}
	spec.Solana.Endpoints = []v1alpha1.Endpoint{{Name: "one", URLSecretRef: &v1alpha1.SecretKeyReference{Name: "rpc", Key: "url"}}, {Name: "two", URL: "http://x"}}
	spec.FeePayers.SecretRefs = []v1alpha1.SecretKeyReference{{Name: "payers", Key: "b"}, {Name: "payers", Key: "a"}}
	spec.Swap = &v1alpha1.Swap{Router: v1alpha1.Router{
		URLSecretRef: &v1alpha1.SecretKeyReference{Name: "router", Key: "url"}, APIKeySecretRef: &v1alpha1.SecretKeyReference{Name: "router", Key: "key"},
	}}
	spec.API.KeysSecretRef = &v1alpha1.SecretKeyReference{Name: "api", Key: "keys"}
	s.restart(t)
	return s
}

func (s *stand) restart(t *testing.T) {
	t.Helper()
	var err error
	s.resolver, err = NewResolver(Options{Reader: s.reader, Now: func() time.Time { return s.now }, Random: func() float64 { return 0.5 }})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *stand) resolve(t *testing.T) Facts {
	t.Helper()
	facts, err := s.resolver.Resolve(t.Context(), s.pool)
	if err != nil {
		t.Fatal(err)
	}
	s.checkNoValues(t, fmt.Sprintf("%+v %v", facts, facts), facts)
	return facts
}

// checkNoValues fails when a value of a Secret appears in any output.
func (s *stand) checkNoValues(t *testing.T, text string, v any) {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	text += string(encoded) + fmt.Sprintf("%+v", s.resolver.pools)
	for _, secret := range []string{canary, s.keys[0][:16], s.keys[1][:16], strings.ReplaceAll(s.keys[0][1:16], ",", " ")} {
		if strings.Contains(text, secret) {
			t.Errorf("the output has a value of a Secret: %s", text)
		}
	}
}

func TestEachNamedObjectIsReadOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	facts := s.resolve(t)
	if !facts.Complete() || len(facts.Problems)+len(facts.Unread) > 0 {
		t.Fatalf("problems %v, unread %v; want none", facts.Problems, facts.Unread)
	}
	var names []string
	for _, o := range facts.Resolved {
		names = append(names, fmt.Sprintf("%s %s %s %s", o.Kind, o.Name, o.UID, o.ResourceVersion))
	}
	want := []string{
		"ConfigMap profile uid-profile 1", "ConfigMap vk uid-vk 1",
		"Secret api uid-api 1", "Secret db uid-db 1", "Secret payers uid-payers 1", "Secret router uid-router 1", "Secret rpc uid-rpc 1",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("resolved (-want +got):\n%s", diff)
	}
	if s.reader.gets != len(want) {
		t.Errorf("%d gets, want %d", s.reader.gets, len(want))
	}
	wantPayers := []Payer{{"payers", "b", s.payers[1]}, {"payers", "a", s.payers[0]}}
	if diff := cmp.Diff(wantPayers, facts.Payers); diff != "" {
		t.Errorf("payers (-want +got):\n%s", diff)
	}
	if string(facts.VerifyingKey) != `{"protocol": "groth16"}` || string(facts.Profile) != "base: shield-pool-v1\n" {
		t.Error("the contents of the ConfigMaps were changed")
	}
}

func TestProblemsNameSecretKeyAndExpectation(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*stand)
		reason string
		parts  []string // of the message
	}{
		"no Secret": {func(s *stand) { delete(s.reader.secrets, "db") },
			v1alpha1.ReasonSecretNotFound, []string{"spec.database.urlSecretRef", "Secret db", "key url", "create"}},
		"no key": {func(s *stand) { s.reader.secrets["db"] = map[string][]byte{"x": nil, "y": nil} },
			v1alpha1.ReasonSecretKeyMissing, []string{"Secret db", "no key url among its 2", "postgres://"}},
		"an empty value": {func(s *stand) { s.reader.secrets["db"]["url"] = []byte(" \n") },
			v1alpha1.ReasonSecretMalformed, []string{"Secret db", "key url", "is empty", "postgres://"}},
		"a database URL of another kind": {func(s *stand) { s.reader.secrets["db"]["url"] = []byte("mysql://u:" + canary + "@h/x") },
			v1alpha1.ReasonSecretMalformed, []string{"Secret db", "has 20 bytes", "postgres://"}},
		"a malformed database URL": {func(s *stand) { s.reader.secrets["db"]["url"] = []byte("postgres://u:" + canary + "%zz@h/x") },
			v1alpha1.ReasonSecretMalformed, []string{"Secret db", "has 26 bytes", "postgres://"}},
		"an endpoint without a host": {func(s *stand) { s.reader.secrets["rpc"]["url"] = []byte("https:///" + canary) },
			v1alpha1.ReasonSecretMalformed, []string{"spec.solana.endpoints[one].urlSecretRef", "Secret rpc", "http://"}},
		"a router that is not a URL": {func(s *stand) { s.reader.secrets["router"]["url"] = []byte(canary) },
			v1alpha1.ReasonSecretMalformed, []string{"spec.swap.router.urlSecretRef", "Secret router", "has 6 bytes"}},
		"a router key of two lines": {func(s *stand) { s.reader.secrets["router"]["key"] = []byte(canary + "\n" + canary) },
			v1alpha1.ReasonSecretMalformed, []string{"spec.swap.router.apiKeySecretRef", "key key", "one line"}},
		"no API key": {func(s *stand) { s.reader.secrets["api"]["keys"] = nil },
			v1alpha1.ReasonSecretMalformed, []string{"spec.api.keysSecretRef", "is empty", "at least one line"}},
		"a text in place of a key": {func(s *stand) { s.reader.secrets["payers"]["a"] = []byte(canary) },
			v1alpha1.ReasonSecretMalformed, []string{"spec.feePayers.secretRefs[1]", "Secret payers", "key a", "64"}},
		"a key with another public half": {func(s *stand) {
			half := strings.Split(s.keys[0], ",")
			other := strings.Split(s.keys[1], ",")
			s.reader.secrets["payers"]["a"] = []byte(strings.Join(append(half[:32], other[32:]...), ","))
		}, v1alpha1.ReasonSecretMalformed, []string{"Secret payers", "key a", "does not belong"}},
		"one key twice": {func(s *stand) { s.reader.secrets["payers"]["a"] = []byte(s.keys[1]) },
			v1alpha1.ReasonDuplicateKey, []string{"spec.feePayers.secretRefs[1]", "spec.feePayers.secretRefs[0]", "key a", "once"}},
		"no ConfigMap": {func(s *stand) { delete(s.reader.configs, "vk") },
			v1alpha1.ReasonConfigMapNotFound, []string{"spec.pool.verifyingKeyConfigMapRef", "ConfigMap vk"}},
		"no key in the ConfigMap": {func(s *stand) { s.reader.configs["vk"] = nil },
			v1alpha1.ReasonConfigMapKeyMissing, []string{"ConfigMap vk", "vk.json"}},
		"a verifying key that is not JSON": {func(s *stand) { s.reader.configs["vk"] = map[string]string{"vk.json": "null"} },
			v1alpha1.ReasonConfigMapMalformed, []string{"ConfigMap vk", "verification_key.json"}},
		"a profile that is not a mapping": {func(s *stand) { s.reader.configs["profile"] = map[string]string{"profile.yaml": "- a"} },
			v1alpha1.ReasonConfigMapMalformed, []string{"spec.pool.profile.configMapRef", "YAML mapping"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			test.change(s)
			facts := s.resolve(t)
			if len(facts.Problems) != 1 || facts.Problems[0].Reason != test.reason {
				t.Fatalf("problems are %v, want one %s", facts.Problems, test.reason)
			}
			for _, part := range test.parts {
				if !strings.Contains(facts.Problems[0].Message, part) {
					t.Errorf("message is %q, want %q in it", facts.Problems[0].Message, part)
				}
			}
			if facts.Complete() || !facts.Known() {
				t.Error("the facts are complete or unknown, want them known and incomplete")
			}
			if wantNext := s.now.Add(DefaultInterval / problemFactor); !facts.Next.Equal(wantNext) {
				t.Errorf("the next reading is at %s, want %s", facts.Next, wantNext)
			}
		})
	}
}

func TestAnUnreadableObjectKeepsItsLastFinding(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	first := s.resolve(t)
	for _, name := range []string{"payers", "vk"} {
		s.reader.fails[name] = apierrors.NewServerTimeout(corev1.Resource("secrets"), "get", 1)
	}
	s.now = first.Next
	second := s.resolve(t)
	if diff := cmp.Diff(first.Payers, second.Payers); diff != "" {
		t.Errorf("payers (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(first.Resolved, second.Resolved); diff != "" {
		t.Errorf("resolved (-first +second):\n%s", diff)
	}
	if len(second.Problems) > 0 || !second.Known() || len(second.VerifyingKey) == 0 {
		t.Errorf("problems are %v, known %t; want none, and known", second.Problems, second.Known())
	}
	for _, u := range second.Unread {
		if u.Cause != "ServerTimeout" || !u.LastRead.Equal(first.ReadAt) || !apierrors.IsServerTimeout(u.Err) {
			t.Errorf("unread is %+v, want ServerTimeout since the first reading", u)
		}
	}
	if len(second.Unread) != 2 || !second.Next.Before(second.ReadAt.Add(DefaultInterval/2)) {
		t.Errorf("%d unread, next reading at %s; want 2, and the reading within half the interval", len(second.Unread), second.Next)
	}

	// Nothing is known about a key of the same Secret that was not checked before.
	s.pool.Generation, s.pool.Spec.FeePayers.SecretRefs[0].Key = 2, "c"
	if third := s.resolve(t); third.Known() {
		t.Error("a key that was never read counts as known")
	}
}

func TestAnObjectThatWasNeverReadIsUnknown(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.reader.fails["db"] = errors.New("connection refused")
	facts := s.resolve(t)
	if facts.Known() || len(facts.Problems) > 0 || len(facts.Unread) != 1 || facts.Unread[0].Cause != "Unreachable" {
		t.Errorf("known %t, problems %v, unread %v; want one object that is unreachable", facts.Known(), facts.Problems, facts.Unread)
	}
	if (Facts{}).Known() {
		t.Error("facts that were never read are known")
	}
}

func TestReadingsFollowTheIntervalAndTheSpec(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	first := s.resolve(t)
	gets := s.reader.gets
	s.now = first.Next.Add(-time.Nanosecond)
	if s.resolve(t); s.reader.gets != gets {
		t.Error("Resolve reads before the interval is over")
	}
	s.pool.Generation++
	if s.resolve(t); s.reader.gets != 2*gets {
		t.Error("Resolve does not read at once when the spec has changed")
	}
	s.now = s.now.Add(DefaultInterval)
	if s.resolve(t); s.reader.gets != 3*gets {
		t.Error("Resolve does not read when the interval is over")
	}
	s.pool.UID = "another"
	if s.resolve(t); s.reader.gets != 4*gets {
		t.Error("Resolve returns the results for an earlier RelayPool of the same name")
	}
	s.resolver.Forget(client.ObjectKeyFromObject(s.pool))
	if s.resolve(t); s.reader.gets != 5*gets {
		t.Error("Resolve returns the old results after Forget")
	}
}

func TestTheIntervalVaries(t *testing.T) {
	t.Parallel()
	for random, want := range map[float64]time.Duration{0: 54 * time.Second, 0.5: time.Minute, 0.999999999: 66 * time.Second} {
		s := newStand(t)
		s.resolver.Random = func() float64 { return random }
		if got := s.resolve(t).Next.Sub(s.now).Round(time.Millisecond); got != want {
			t.Errorf("with %v the interval is %s, want %s", random, got, want)
		}
	}
}

func TestResolveReturnsTheErrorOfAnEndedContext(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.resolver.Resolve(ctx, s.pool); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want the error of the context", err)
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	got, err := s.resolver.Value(t.Context(), client.ObjectKeyFromObject(s.pool), v1alpha1.SecretKeyReference{Name: "rpc", Key: "url"})
	if err != nil || got != "https://rpc.example/"+canary {
		t.Errorf("value is %q, error %v; want the URL in the Secret", got, err)
	}
	s.reader.fails["api"] = apierrors.NewForbidden(corev1.Resource("secrets"), "api", errors.New("no"))
	for name, want := range map[string]string{
		"none": "Secret none does not exist", "rpc": "no key missing", "api": "read Secret api",
	} {
		_, err := s.resolver.Value(t.Context(), client.ObjectKeyFromObject(s.pool), v1alpha1.SecretKeyReference{Name: name, Key: "missing"})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canary) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
}

func TestConstructorRefusesMissingOptions(t *testing.T) {
	t.Parallel()
	if _, err := NewResolver(Options{}); err == nil {
		t.Error("a resolver without a reader is made")
	}
	o := newStand(t).resolver.Options
	o.Interval = -1
	if _, err := NewResolver(o); err == nil {
		t.Error("a resolver with an interval below 0 is made")
	}
}

// A RelayPool can name objects that it is not allowed to use. Its status then shows neither their
// keys nor their lengths, and the operator uses nothing from them.
func TestADisallowedObjectIsNotInspected(t *testing.T) {
	t.Parallel()
	usable := map[string]string{v1alpha1.LabelUsableBy: "p"}
	everything := map[string]map[string]string{}
	for _, name := range []string{"db", "rpc", "router", "api", "payers", "vk", "profile", "pull"} {
		everything[name] = usable
	}
	with := func(name string, labels map[string]string) map[string]map[string]string {
		out := maps.Clone(everything)
		out[name] = labels
		return out
	}
	generated := func(of string) map[string]string {
		return map[string]string{build.LabelPool: of, build.LabelPayerState: "active"}
	}
	strict := tenancy.Policy{RequireLabel: true}
	tests := map[string]struct {
		policy     tenancy.Policy
		labels     map[string]map[string]string
		change     func(*stand)
		wantReason string // empty: nothing is wrong
		wantField  string
	}{
		"every object has the label":                        {strict, everything, nil, "", ""},
		"no label is required":                              {tenancy.Policy{}, nil, nil, "", ""},
		"the database's Secret lacks the label":             {strict, with("db", nil), nil, v1alpha1.ReasonSecretNotUsable, "spec.database.urlSecretRef"},
		"the database's Secret lacks the label and the key": {strict, with("db", nil), func(s *stand) { s.reader.secrets["db"] = nil }, v1alpha1.ReasonSecretNotUsable, "spec.database.urlSecretRef"},
		"an endpoint's Secret lacks the label":              {strict, with("rpc", nil), nil, v1alpha1.ReasonSecretNotUsable, "spec.solana.endpoints[one].urlSecretRef"},
		"a fee payer's Secret lacks the label":              {strict, with("payers", nil), nil, v1alpha1.ReasonSecretNotUsable, "spec.feePayers.secretRefs[0]"},
		"the router's Secret lacks the label":               {strict, with("router", nil), nil, v1alpha1.ReasonSecretNotUsable, "spec.swap.router.urlSecretRef"},
		"the API keys' Secret is for another pool":          {strict, with("api", map[string]string{v1alpha1.LabelUsableBy: "q"}), nil, v1alpha1.ReasonSecretNotUsable, "spec.api.keysSecretRef"},
		"a pull secret lacks the label":                     {strict, with("pull", nil), nil, v1alpha1.ReasonSecretNotUsable, "spec.template.imagePullSecrets[pull]"},
		"a pull secret is missing":                          {strict, everything, func(s *stand) { delete(s.reader.secrets, "pull") }, v1alpha1.ReasonSecretNotFound, "spec.template.imagePullSecrets[pull]"},
		"a pull secret is missing, but not checked":         {tenancy.Policy{}, nil, func(s *stand) { delete(s.reader.secrets, "pull") }, "", ""},
		"the verifying key lacks the label":                 {strict, with("vk", nil), nil, v1alpha1.ReasonConfigMapNotUsable, "spec.pool.verifyingKeyConfigMapRef"},
		"the profile lacks the label":                       {strict, with("profile", nil), nil, v1alpha1.ReasonConfigMapNotUsable, "spec.pool.profile.configMapRef"},
		"the payers are another's generated keys":           {tenancy.Policy{}, with("payers", generated("other")), nil, v1alpha1.ReasonGeneratedKey, "spec.feePayers.secretRefs[0]"},
		"the payers are its own generated keys":             {tenancy.Policy{}, with("payers", generated("p")), nil, "", ""},
		"the API keys are a generated key":                  {tenancy.Policy{}, with("api", generated("p")), nil, v1alpha1.ReasonGeneratedKey, "spec.api.keysSecretRef"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			s.reader.labels = tc.labels
			s.reader.secrets["pull"] = map[string][]byte{".dockerconfigjson": []byte(canary)}
			s.pool.Spec.Template.ImagePullSecrets = []v1alpha1.SecretReference{{Name: "pull"}}
			if tc.change != nil {
				tc.change(s)
			}
			s.resolver.Policy = tc.policy
			facts := s.resolve(t)
			if tc.wantReason == "" {
				if len(facts.Problems) > 0 || !facts.Complete() {
					t.Errorf("problems are %v, want none", facts.Problems)
				}
				if slices.ContainsFunc(facts.Resolved, func(o Object) bool { return o.Name == "pull" }) {
					t.Error("a pull secret is among the resolved objects, so its changes would cause a rollout")
				}
				return
			}
			if facts.Complete() || len(facts.Problems) == 0 {
				t.Fatalf("problems are %v, want at least one, so that the fleet is not deployed", facts.Problems)
			}
			p := facts.Problems[0]
			if p.Reason != tc.wantReason || !slices.ContainsFunc(facts.Problems, func(p Problem) bool { return strings.HasPrefix(p.Message, tc.wantField+": ") }) {
				t.Errorf("problem is %s: %s, want %s of %s", p.Reason, p.Message, tc.wantReason, tc.wantField)
			}
			for _, p := range facts.Problems {
				for _, detail := range []string{"among its", "has a key", "bytes"} {
					if strings.Contains(p.Message, detail) {
						t.Errorf("message %q has details of the disallowed object", p.Message)
					}
				}
			}
			if tc.wantField == "spec.pool.verifyingKeyConfigMapRef" && facts.VerifyingKey != nil || tc.wantField == "spec.pool.profile.configMapRef" && facts.Profile != nil {
				t.Error("the content of a disallowed ConfigMap is used")
			}
			if strings.HasPrefix(tc.wantField, "spec.feePayers") && len(facts.Payers) > 0 {
				t.Errorf("payers are %v, want none", facts.Payers)
			}
		})
	}
}

// A removed label is noticed at the next reading.
func TestRemovedLabelIsNoticed(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.resolver.Policy = tenancy.Policy{RequireLabel: true, Usable: []string{"n/rpc", "n/router", "n/api", "n/payers", "n/vk", "n/profile"}}
	s.reader.labels = map[string]map[string]string{"db": {v1alpha1.LabelUsableBy: v1alpha1.UsableByAny}}
	first := s.resolve(t)
	if !first.Complete() {
		t.Fatalf("problems are %v, want none", first.Problems)
	}
	s.reader.labels, s.now = nil, first.Next
	if second := s.resolve(t); len(second.Problems) != 1 || second.Problems[0].Reason != v1alpha1.ReasonSecretNotUsable || second.Problems[0].Name != "db" {
		t.Errorf("problems are %v, want SecretNotUsable for db", second.Problems)
	}
}

// The operator itself sends requests to the URL in an endpoint's Secret.
func TestValueOfADisallowedSecretIsNotReturned(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.resolver.Policy = tenancy.Policy{RequireLabel: true}
	got, err := s.resolver.Value(t.Context(), client.ObjectKeyFromObject(s.pool), v1alpha1.SecretKeyReference{Name: "rpc", Key: "url"})
	if got != "" || err == nil || !strings.Contains(err.Error(), "Secret rpc may not be used by this RelayPool") {
		t.Errorf("value has %d characters, error %v; want no value, and the reason in the error", len(got), err)
	}
	s.reader.labels = map[string]map[string]string{"rpc": {v1alpha1.LabelUsableBy: "p"}}
	if _, err := s.resolver.Value(t.Context(), client.ObjectKeyFromObject(s.pool), v1alpha1.SecretKeyReference{Name: "rpc", Key: "url"}); err != nil {
		t.Errorf("with the label the error is %v, want none", err)
	}
}
