package manifests

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/manager"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/controllers/internal/refs"
	"github.com/relaypool/relaypool/controllers/internal/settings"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/rpc"
)

// recorder records a client's requests to the API server as RBAC permissions, and which of
// them were forbidden.
type recorder struct {
	inner  http.RoundTripper
	mutex  *sync.Mutex
	used   map[string]bool
	denied map[string]bool
}

func newRecorder() *recorder {
	return &recorder{mutex: &sync.Mutex{}, used: map[string]bool{}, denied: map[string]bool{}}
}

// wrap records every call of the configuration.
func (r *recorder) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return &recorder{inner: inner, mutex: r.mutex, used: r.used, denied: r.denied}
	})
	return config
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.inner.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	requested, ok := permission(request.Method, request.URL)
	if !ok {
		return response, nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if response.StatusCode == http.StatusForbidden {
		r.denied[requested] = true
	}
	r.used[requested] = true
	if response.StatusCode == http.StatusCreated {
		// Applying an object that does not exist requires both patch and create.
		_, what, _ := strings.Cut(requested, " ")
		r.used["create "+what] = true
	}
	return response, nil
}

// permission returns "verb group/resource", and false for requests without a resource, such
// as discovery.
func permission(method string, u *url.URL) (string, bool) {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return "", false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	resource := parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	named := len(parts) > 1
	verb := map[string]string{
		http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	}[method]
	if method == http.MethodGet {
		verb = "list"
		if u.Query().Get("watch") != "" {
			verb = "watch"
		} else if named {
			verb = "get"
		}
	}
	return verb + " " + group + "/" + resource, verb != ""
}

func (r *recorder) sorted(of map[string]bool) []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var out []string
	for p := range of {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// silent is the backlog reader of a fleet that does not answer.
type silent struct{}

func (silent) Backlog(context.Context, string) (pool.Backlog, error) {
	return pool.Backlog{}, errors.New("no pod answers here")
}

// runOperator runs the whole operator with the rights of config until the test ends, limited
// to the given namespaces if there are any.
func runOperator(t *testing.T, config *rest.Config, namespaces ...string) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	m, err := manager.New(manager.Options{Log: log, Config: &settings.Config{
		Run: settings.Run{
			LeaderElect: true, OperatorNamespace: contract.OperatorSystemNamespace, Namespaces: namespaces,
			Work:      settings.Work{ConcurrentReconciles: 1, Resync: time.Hour},
			Listening: settings.Listening{MetricsListen: settings.None, HealthListen: settings.None},
			Leading:   settings.Leading{Name: contract.OperatorLease, Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second},
		},
		Rest: config,
	}})
	must(t, err)
	live := m.GetAPIReader()
	observer, err := keys.NewObserver(keys.ObserverOptions{Reader: live, Now: time.Now, Random: mathrand.Float64})
	must(t, err)
	writer, err := keys.NewWriter(keys.WriterOptions{Client: m.GetClient(), Random: rand.Reader, Log: log, Observer: observer})
	must(t, err)
	resolver, err := refs.NewResolver(refs.Options{Reader: live, Now: time.Now, Random: mathrand.Float64, Interval: time.Second})
	must(t, err)
	watcher, err := chainwatch.New(chainwatch.Options{HTTP: rpc.NewHTTPClient(), Now: time.Now, Random: mathrand.Float64})
	must(t, err)
	t.Cleanup(watcher.Close)
	poller, err := pool.NewPoller(silent{}, time.Now)
	must(t, err)
	groups, err := discovery.NewDiscoveryClientForConfig(config)
	must(t, err)
	capabilities, err := apply.NewCapabilities(groups, time.Now, 0)
	must(t, err)
	applier, err := apply.New(apply.Options{Client: m.GetClient(), Live: live, Capabilities: capabilities, Now: time.Now})
	must(t, err)
	reconciler, err := pool.New(pool.Options{
		Client: m.GetClient(), Live: live, References: resolver, KeyObserver: observer, KeyWriter: writer,
		Applier: applier, Capabilities: capabilities, Watcher: watcher, Backlogs: poller,
		Recorder: m.GetEventRecorder("relaypool-operator"), Now: time.Now, Random: mathrand.Float64,
		Settings: pool.Settings{Image: "relay:1", OperatorNamespace: contract.OperatorSystemNamespace},
	})
	must(t, err)
	must(t, errors.Join(m.Manager.Add(watcher), m.Manager.Add(poller), m.Add(reconciler)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
}

// fleet makes a RelayPool, its namespace and all objects that the RelayPool names.
func fleet(t *testing.T, c client.Client, sample string) *v1alpha1.RelayPool {
	t.Helper()
	ctx := t.Context()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleets", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	must(t, c.Create(ctx, namespace))
	key, err := os.ReadFile("../../../relay/groth16/testdata/verification_key.json")
	must(t, err)
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shield-verifying-key"}, Data: map[string]string{"verification_key.json": string(key)}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "shield-rpc"}, StringData: map[string]string{"url": "http://127.0.0.1:1"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "shield-database"}, StringData: map[string]string{"url": "postgres://relay@database/relay"}},
	} {
		o.SetNamespace(namespace.Name)
		must(t, c.Create(ctx, o))
	}
	u := read(t, filepath.Join(config, "samples", sample))[0]
	u.SetNamespace(namespace.Name)
	must(t, c.Create(ctx, u))
	return current(t, c, client.ObjectKeyFromObject(u))
}

func current(t *testing.T, c client.Client, key client.ObjectKey) *v1alpha1.RelayPool {
	t.Helper()
	var p v1alpha1.RelayPool
	must(t, c.Get(t.Context(), key, &p))
	return &p
}

func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute: %v", what, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// definitions are CRDs of the optional kinds without HTTPRoute.
func definitions() []*apiextensionsv1.CustomResourceDefinition {
	plurals := map[schema.GroupVersionKind]string{
		build.KindPodMonitor: "podmonitors", build.KindPrometheusRule: "prometheusrules", build.KindScaledObject: "scaledobjects",
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for kind, plural := range plurals {
		out = append(out, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + "." + kind.Group},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.Kind, Plural: plural},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: kind.Version, Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", XPreserveUnknownFields: new(true)}},
				}},
			},
		})
	}
	return out
}

// cluster is a cluster on which the operator works.
type cluster struct {
	t     *testing.T
	c     client.Client
	calls *recorder
	pool  client.ObjectKey
}

// change edits the RelayPool, as its user does.
func (w *cluster) change(edit func(*v1alpha1.RelayPoolSpec)) {
	w.t.Helper()
	eventually(w.t, "the RelayPool is changed", func() error {
		p := current(w.t, w.c, w.pool)
		edit(&p.Spec)
		return w.c.Update(w.t.Context(), p)
	})
}

// awaitKinds waits until the RelayPool's objects of these kinds exist, and those of the other
// optional kinds do not.
func (w *cluster) awaitKinds(what string, kinds ...schema.GroupVersionKind) {
	w.t.Helper()
	eventually(w.t, what, func() error {
		for _, kind := range []schema.GroupVersionKind{
			build.KindHorizontalPodAutoscaler, build.KindNetworkPolicy, build.KindPodMonitor, build.KindPrometheusRule, build.KindScaledObject,
			build.KindIngress, build.KindHTTPRoute,
		} {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(kind)
			err := w.c.Get(w.t.Context(), w.pool, u)
			if err := client.IgnoreNotFound(err); err != nil {
				return err
			}
			if exists := u.GetName() != ""; exists != slices.Contains(kinds, kind) {
				return fmt.Errorf("%s exists: %v", kind.Kind, exists)
			}
		}
		return nil
	})
}

// finish ends the Job of that name, as its controller does.
func (w *cluster) finish(name string, condition ...batchv1.JobConditionType) {
	w.t.Helper()
	eventually(w.t, "the Job "+name+" ends", func() error {
		var job batchv1.Job
		if err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.pool.Namespace, Name: name}, &job); err != nil {
			return err
		}
		now := metav1.Now()
		job.Status = batchv1.JobStatus{StartTime: &now}
		for _, c := range condition {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		if slices.Contains(condition, batchv1.JobComplete) {
			job.Status.CompletionTime, job.Status.Succeeded = &now, 1
		}
		return w.c.Status().Update(w.t.Context(), &job)
	})
}

// usedElsewhere are permissions that the operator needs for actions outside this test; each
// entry describes the action.
func usedElsewhere() map[string]string {
	return map[string]string{
		"patch events.k8s.io/events":                 "an event that repeats within six minutes is counted by a patch; whether one repeats depends on timing",
		"update relaypool.dev/relaypools/finalizers": "required by clusters with OwnerReferencesPermissionEnforcement",
	}
}

// withFleet is a cluster with config/default and these components, the optional kinds
// and a RelayPool, and the operator's account on it.
func withFleet(t *testing.T, components ...string) (*cluster, *rest.Config) {
	t.Helper()
	server, _ := startWithManifests(t, components...)
	must(t, server.Install(append(definitions(), apiservertest.HTTPRouteCRD(t))...))
	admin, err := server.Config()
	must(t, err)
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	c, err := client.New(admin, client.Options{Scheme: scheme})
	must(t, err)
	account, err := server.ServiceAccount(t.Context(), contract.OperatorSystemNamespace, "relaypool-operator")
	must(t, err)
	w := &cluster{t: t, c: c, calls: newRecorder()}
	w.pool = client.ObjectKeyFromObject(fleet(t, c, "relaypool_v1alpha1_generated_keys.yaml"))
	return w, account
}

// An operator for some namespaces needs bindings only in these, so that a team can install
// it without rights elsewhere. The threat model of docs/guides/tenancy.md lists line by line
// what a thief of the operator's token can do.
func TestNamespacedOperatorNeedsNoClusterWideBinding(t *testing.T) {
	t.Parallel()
	w, account := withFleet(t)
	must(t, w.c.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.pool.Namespace, Name: "relaypool-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "relaypool-operator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: contract.OperatorSystemNamespace, Name: "relaypool-operator"}},
	}))
	thief, err := client.New(account, client.Options{Scheme: w.c.Scheme()})
	must(t, err)
	eventually(t, "the binding holds", func() error {
		return thief.List(t.Context(), &v1alpha1.RelayPoolList{}, client.InNamespace(w.pool.Namespace))
	})
	tryStolenToken(t, thief, w.pool.Namespace, map[string]bool{
		"read a Secret of a fleet's namespace":    true,
		"make pods in a fleet's namespace":        true,
		"list RelayPools of all namespaces":       false,
		"read a Secret elsewhere":                 false,
		"make pods elsewhere":                     false,
		"make pods beside the operator":           false,
		"list the Secrets of a fleet's namespace": false,
		"delete a Secret of a fleet's namespace":  false,
		"give itself a role":                      false,
		"have another account's token made":       true,
	})
	runOperator(t, w.calls.wrap(account), w.pool.Namespace)
	w.runLifetime()
	if denied := w.calls.sorted(w.calls.denied); len(denied) > 0 {
		t.Errorf("the operator was denied %q", denied)
	}
}

// With access to a whole cluster, a stolen token is as powerful as an administrator's: it
// can make pods of any service account, anywhere. So the operator does not have that access by default.
func TestClusterWideTokenIsAsPowerfulAsAnAdministrator(t *testing.T) {
	t.Parallel()
	w, account := withFleet(t, "cluster-wide")
	thief, err := client.New(account, client.Options{Scheme: w.c.Scheme()})
	must(t, err)
	tryStolenToken(t, thief, w.pool.Namespace, map[string]bool{
		"read a Secret of a fleet's namespace":    true,
		"make pods in a fleet's namespace":        true,
		"list RelayPools of all namespaces":       true,
		"read a Secret elsewhere":                 true,
		"make pods elsewhere":                     true,
		"make pods beside the operator":           true,
		"list the Secrets of a fleet's namespace": false,
		"delete a Secret of a fleet's namespace":  false,
		"give itself a role":                      false,
		"have another account's token made":       true,
	})
}

// tryStolenToken tries what a thief of the operator's token would try, and compares the results
// with the threat model.
func tryStolenToken(t *testing.T, thief client.Client, fleets string, want map[string]bool) {
	t.Helper()
	const elsewhere = "kube-system"
	secret := func(namespace string) func() error {
		return func() error {
			err := thief.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "whatever"}, &corev1.Secret{})
			return client.IgnoreNotFound(err) // not found means that reading is permitted
		}
	}
	pods := func(namespace string) func() error {
		return func() error {
			labels := map[string]string{"a": "thief"}
			return thief.Create(t.Context(), &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "thief"},
				Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{ServiceAccountName: "an-administrator", Containers: []corev1.Container{{Name: "shell", Image: "evil.example/shell"}}},
				}},
			}, client.DryRunAll)
		}
	}
	tries := map[string]func() error{
		"read a Secret of a fleet's namespace": secret(fleets),
		"make pods in a fleet's namespace":     pods(fleets),
		"list RelayPools of all namespaces":    func() error { return thief.List(t.Context(), &v1alpha1.RelayPoolList{}) },
		"read a Secret elsewhere":              secret(elsewhere),
		"make pods elsewhere":                  pods(elsewhere),
		"make pods beside the operator":        pods(contract.OperatorSystemNamespace),
		"list the Secrets of a fleet's namespace": func() error {
			return thief.List(t.Context(), &corev1.SecretList{}, client.InNamespace(fleets))
		},
		"delete a Secret of a fleet's namespace": func() error {
			return thief.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fleets, Name: "shield-rpc"}}, client.DryRunAll)
		},
		"give itself a role": func() error {
			return thief.Create(t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "thief"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: contract.OperatorSystemNamespace, Name: "relaypool-operator"}},
			}, client.DryRunAll)
		},
		"have another account's token made": func() error {
			return thief.Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: fleets, Name: "thief", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
				Type:       corev1.SecretTypeServiceAccountToken,
			}, client.DryRunAll)
		},
	}
	if len(want) != len(tries) {
		t.Fatalf("%d expected outcomes for %d tries", len(want), len(tries))
	}
	for what, try := range tries {
		err := try()
		if want[what] && err != nil || !want[what] && !apierrors.IsForbidden(err) {
			t.Errorf("with a stolen token, %s: error is %v; the request has to be permitted: %t", what, err, want[what])
		}
	}
}

func TestTheRoleAllowsExactlyTheOperatorsRequests(t *testing.T) {
	t.Parallel()
	w, account := withFleet(t, "cluster-wide")
	runOperator(t, w.calls.wrap(account))
	w.runLifetime()

	if denied := w.calls.sorted(w.calls.denied); len(denied) > 0 {
		t.Errorf("the operator was denied %q", denied)
	}
	used := w.calls.sorted(w.calls.used)
	for _, p := range permissions(operatorRole(t).Rules) {
		// A watch that streams all objects at its start replaces a list, which the client
		// needs only as a fallback.
		asWatch := strings.Replace(p, "list ", "watch ", 1)
		if usedElsewhere()[p] == "" && !slices.Contains(used, p) && !slices.Contains(used, asWatch) {
			t.Errorf("the operator may %s, but never does", p)
		}
	}
}

// runLifetime takes the RelayPool through its whole lifetime.
func (w *cluster) runLifetime() {
	monitoring := []schema.GroupVersionKind{build.KindPodMonitor, build.KindPrometheusRule}
	w.awaitKinds("a fleet of a fixed size", monitoring...)
	w.change(func(s *v1alpha1.RelayPoolSpec) {
		s.Pool.Gate, s.Replicas = v1alpha1.GateWarn, nil
		s.Autoscaling = &v1alpha1.Autoscaling{MaxReplicas: 4}
		anywhere := []v1alpha1.Destination{{CIDR: "10.0.0.0/8", Port: 5432}}
		s.NetworkPolicy = &v1alpha1.NetworkPolicy{Database: anywhere, RPC: anywhere}
		s.API.Ingress = &v1alpha1.Ingress{Hosts: []string{"relay.example"}}
		s.API.Gateway = &v1alpha1.Gateway{ParentRefs: []v1alpha1.GatewayReference{{Name: "public"}}}
	})
	w.awaitKinds("a fleet with an HPA, a network policy and ways in", append(monitoring, build.KindHorizontalPodAutoscaler, build.KindNetworkPolicy, build.KindIngress, build.KindHTTPRoute)...)
	w.change(func(s *v1alpha1.RelayPoolSpec) {
		s.Autoscaling.Provider = v1alpha1.ProviderKEDA
		s.API.Ingress, s.API.Gateway = nil, nil
	})
	w.awaitKinds("a fleet that KEDA scales", append(monitoring, build.KindScaledObject, build.KindNetworkPolicy)...)
	w.change(func(s *v1alpha1.RelayPoolSpec) {
		s.Autoscaling, s.NetworkPolicy = nil, nil
		s.Monitoring.PodMonitor, s.Monitoring.PrometheusRule = v1alpha1.Disabled, v1alpha1.Disabled
	})
	w.awaitKinds("a fleet without optional objects")

	// A rotation whose first Job fails once and is retried on request.
	w.change(func(s *v1alpha1.RelayPoolSpec) { s.FeePayers.Rotation.Revision = 1 })
	fund := build.JobName(w.pool.Name, 1, build.StepFund)
	w.finish(fund, batchv1.JobFailureTarget, batchv1.JobFailed)
	eventually(w.t, "a retry is asked for", func() error {
		p := current(w.t, w.c, w.pool)
		p.Annotations = map[string]string{keys.AnnotationRetry: "1"}
		return w.c.Update(w.t.Context(), p)
	})
	eventually(w.t, "the Job is made again", func() error {
		var job batchv1.Job
		if err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.pool.Namespace, Name: fund}, &job); err != nil {
			return err
		}
		if job.Status.StartTime != nil {
			return errors.New("it is the old Job")
		}
		return nil
	})
	w.finish(fund, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
	eventually(w.t, "the new keys are in use", func() error {
		for _, payer := range current(w.t, w.c, w.pool).Status.FeePayers {
			if payer.State == v1alpha1.PayerDraining {
				return nil
			}
		}
		return errors.New("no key is being drained")
	})

	must(w.t, w.c.Delete(w.t.Context(), current(w.t, w.c, w.pool)))
	eventually(w.t, "the RelayPool is deleted", func() error {
		err := w.c.Get(w.t.Context(), w.pool, &v1alpha1.RelayPool{})
		if err == nil {
			return errors.New("it is still there")
		}
		return client.IgnoreNotFound(err)
	})
}
