package build_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/relay/contract"
)

// template is the part of a pod template that tests need.
type template struct {
	metadata map[string]string
	spec     corev1.PodSpec
}

func templates(t *testing.T) map[string]template {
	t.Helper()
	all := map[string]template{}
	for name, in := range fixtures(t) {
		pod := into[appsv1.Deployment](t, single(t, build.Objects(in), "Deployment")).Spec.Template
		all[name] = template{pod.Labels, pod.Spec}
	}
	for _, o := range rotation(t) {
		pod := into[batchv1.Job](t, o).Spec.Template
		all[o.Name] = template{pod.Labels, pod.Spec}
	}
	return all
}

func TestPodsMeetTheRestrictedStandard(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := psa.LevelVersion{Level: psa.LevelRestricted, Version: psa.LatestVersion()}
	for name, pod := range templates(t) {
		for _, result := range evaluator.EvaluatePod(restricted, &metav1.ObjectMeta{}, &pod.spec) {
			if !result.Allowed {
				t.Errorf("%s: %s (%s)", name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
		if ptr.Deref(pod.spec.AutomountServiceAccountToken, true) {
			t.Errorf("%s: a token of the service account is mounted", name)
		}
		if ptr.Deref(pod.spec.EnableServiceLinks, true) {
			t.Errorf("%s: Services become variables, and the variables of a Service named relaypool would begin with %s", name, contract.VariablePrefix)
		}
		for _, c := range pod.spec.Containers {
			if c.SecurityContext == nil || !ptr.Deref(c.SecurityContext.ReadOnlyRootFilesystem, false) {
				t.Errorf("%s: the root file system can be written to", name)
			}
		}
	}
}

func TestVariablesMatchTheContract(t *testing.T) {
	t.Parallel()
	// The operator sets none of these, each for a reason.
	unused := map[string]string{
		contract.EnvRPCURL:                  "the endpoints file contains it",
		contract.EnvRPCURLFile:              "the endpoints file names it",
		contract.EnvRPCCAFile:               "the endpoints file names it",
		contract.EnvCompliancePublicKeyFile: "the key is public and stands in the variable itself",
		contract.EnvSignInMessages:          "the file contains the messages",
		contract.EnvWaitMax:                 "the relay's default is the most that spec.api.waitSeconds may be",
	}
	set := map[string]bool{}
	for name, pod := range templates(t) {
		seen := map[string]bool{}
		for _, v := range pod.spec.Containers[0].Env {
			if seen[v.Name] {
				t.Errorf("%s: %s is set twice", name, v.Name)
			}
			seen[v.Name], set[v.Name] = true, true
			if !slices.Contains(append(contract.EnvironmentVariables(), contract.EnvTemporaryFolder, "GOMEMLIMIT"), v.Name) {
				t.Errorf("%s: %s is no variable of the relay", name, v.Name)
			}
		}
	}
	for _, name := range contract.EnvironmentVariables() {
		if _, ok := unused[name]; ok == set[name] {
			t.Errorf("%s: set is %t, want %t: set it from the spec, or list it in unused with the reason", name, set[name], !ok)
		}
	}
}

// Without this test, a variable that names a file which is not mounted, or the reverse,
// would be noticed only in a cluster.
func TestEveryFileThatIsNamedIsMounted(t *testing.T) {
	t.Parallel()
	for name, pod := range templates(t) {
		container := pod.spec.Containers[0]
		named := map[string]bool{}
		for _, text := range append(values(container.Env), container.Args...) {
			_, after, found := strings.Cut(text, contract.Root)
			for found {
				var path string
				path, after, _ = strings.Cut(after, ",")
				named[contract.Root+path] = true
				_, after, found = strings.Cut(after, contract.Root)
			}
		}
		if !named[contract.EndpointsFile] || !named[contract.DatabaseURLFile] {
			t.Errorf("%s: variables and arguments name only the files %v", name, named)
		}
		mounted := map[string]bool{}
		for _, source := range relayFiles(pod.spec).Sources {
			for _, item := range items(source) {
				if mounted[item.Path] {
					t.Errorf("%s: %s is mounted twice", name, item.Path)
				}
				mounted[item.Path] = true
				file := contract.Root + "/" + item.Path
				// The lists of endpoints, routers and signers name these.
				listed := slices.ContainsFunc([]string{"rpc/", "rpc-ca/", "fallback-routers/", "fallback-router-ca/", "signers/"}, func(folder string) bool { return strings.HasPrefix(item.Path, folder) })
				if !named[file] && !listed {
					t.Errorf("%s: %s is mounted, but no variable or argument names it", name, file)
				}
				delete(named, file)
			}
		}
		for file := range named {
			t.Errorf("%s: %s is not mounted", name, file)
		}
		if mode := ptr.Deref(relayFiles(pod.spec).DefaultMode, 0); mode != 0o440 {
			t.Errorf("%s: files have the mode %o, want 440", name, mode)
		}
	}
}

// relayFiles returns the volume with the relay's files.
func relayFiles(pod corev1.PodSpec) *corev1.ProjectedVolumeSource {
	i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "files" })
	return pod.Volumes[i].Projected
}

func items(source corev1.VolumeProjection) []corev1.KeyToPath {
	if source.Secret != nil {
		return source.Secret.Items
	}
	if source.ServiceAccountToken != nil {
		return []corev1.KeyToPath{{Path: source.ServiceAccountToken.Path}}
	}
	return source.ConfigMap.Items
}

func values(env []corev1.EnvVar) []string {
	var all []string
	for _, v := range env {
		all = append(all, v.Value)
	}
	return all
}

// Jobs' pods sign with keys that are going out of use: a Service must not send clients to
// them, and a Deployment must not count them as its own.
func TestOnlyTheFleetIsSelected(t *testing.T) {
	t.Parallel()
	pods := templates(t)
	for name, in := range fixtures(t) {
		selector := labels.SelectorFromSet(build.Selector(in.Pool.Name))
		for other, pod := range pods {
			if got := selector.Matches(labels.Set(pod.metadata)); got != (other == name) {
				t.Errorf("the selector of %s matches the pods of %s: %t, want %t", name, other, got, other == name)
			}
		}
	}
	policyOf := into[networkingv1.NetworkPolicy](t, single(t, build.Objects(fixtures(t)["full"]), "NetworkPolicy"))
	job := build.RotationJob(fixtures(t)["full"], build.Rotation{Step: build.StepDrain})
	if !labels.SelectorFromSet(policyOf.Spec.PodSelector.MatchLabels).Matches(labels.Set(into[batchv1.Job](t, job).Spec.Template.Labels)) {
		t.Error("the network policy does not bind the rotation's pods")
	}
}

func TestGracePeriodMatchesTheContract(t *testing.T) {
	t.Parallel()
	pod := templates(t)["minimal"].spec
	if got := ptr.Deref(pod.TerminationGracePeriodSeconds, 0); got != int64(contract.TerminationGrace/time.Second) {
		t.Errorf("the grace period is %d s, want %s", got, contract.TerminationGrace)
	}
	if got := pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds; got != int64(contract.PreStop/time.Second) {
		t.Errorf("the sleep before the stop is %d s, want %s", got, contract.PreStop)
	}
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		replicas *int32
		held     bool
		want     *int32
	}{
		"a number is applied":                       {ptr.To[int32](3), false, ptr.To[int32](3)},
		"nil leaves the field out":                  {nil, false, nil},
		"zero is applied":                           {ptr.To[int32](0), false, ptr.To[int32](0)},
		"a held fleet has 0 pods":                   {ptr.To[int32](3), true, ptr.To[int32](0)},
		"a held fleet has 0 pods, with nil as well": {nil, true, ptr.To[int32](0)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fixtures(t)["minimal"]
			in.Replicas, in.Withheld = tc.replicas, tc.held
			got := into[appsv1.Deployment](t, single(t, build.Objects(in), "Deployment")).Spec.Replicas
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("replicas (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThereIsOneScalerAtMost(t *testing.T) {
	t.Parallel()
	all := build.Capabilities{PodMonitor: true, PrometheusRule: true, ScaledObject: true}
	tests := map[string]struct {
		provider     v1alpha1.Provider
		held         bool
		capabilities build.Capabilities
		want         []string
	}{
		"an HPA needs no optional kind":           {v1alpha1.ProviderHPA, false, build.Capabilities{}, []string{"HorizontalPodAutoscaler"}},
		"an HPA excludes KEDA":                    {v1alpha1.ProviderHPA, false, all, []string{"HorizontalPodAutoscaler"}},
		"KEDA makes its own HPA":                  {v1alpha1.ProviderKEDA, false, all, []string{"ScaledObject"}},
		"without KEDA there is no autoscaler":     {v1alpha1.ProviderKEDA, false, build.Capabilities{}, nil},
		"a held fleet is not scaled by an HPA":    {v1alpha1.ProviderHPA, true, all, nil},
		"a held fleet is not scaled by KEDA":      {v1alpha1.ProviderKEDA, true, all, nil},
		"a fleet without autoscaling is unscaled": {"", false, all, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fixtures(t)["full"]
			in.Withheld, in.Capabilities = tc.held, tc.capabilities
			in.Pool.Spec.Autoscaling.Provider = tc.provider
			if tc.provider == "" {
				in.Pool.Spec.Autoscaling = nil
			}
			var got []string
			for _, o := range build.Objects(in) {
				if o.Kind == build.KindHorizontalPodAutoscaler || o.Kind == build.KindScaledObject {
					got = append(got, o.Kind.Kind)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("scalers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnHTTPRouteNeedsItsKind(t *testing.T) {
	t.Parallel()
	for name, has := range map[string]bool{"the Gateway API is installed": true, "the Gateway API is not installed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fixtures(t)["exposed"]
			in.Capabilities.HTTPRoute = has
			isRoute := func(o build.Object) bool { return o.Kind == build.KindHTTPRoute }
			if got := slices.ContainsFunc(build.Objects(in), isRoute); got != has {
				t.Errorf("an HTTPRoute is made: %t, want %t", got, has)
			}
		})
	}
}

// A proxy that gives up before the relay takes the outcome away from a client that waits for it.
func TestProxiesWaitAsLongAsTheRelay(t *testing.T) {
	t.Parallel()
	const readTimeout = "nginx.ingress.kubernetes.io/proxy-read-timeout"
	tests := map[string]struct{ fixture, want string }{
		"the operator sets the time":   {"exposed", strconv.Itoa(int(contract.LongestRequest.Seconds()))},
		"the user's time has priority": {"full", "200"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := build.Objects(fixtures(t)[tc.fixture])
			if got := asUnstructured(t, single(t, objects, "Ingress")).GetAnnotations()[readTimeout]; got != tc.want {
				t.Errorf("%s is %q, want %q", readTimeout, got, tc.want)
			}
			rules, _, _ := unstructured.NestedSlice(asUnstructured(t, single(t, objects, "HTTPRoute")).Object, "spec", "rules")
			timeouts := rules[0].(map[string]any)["timeouts"].(map[string]any)
			for _, field := range []string{"request", "backendRequest"} {
				if d, err := time.ParseDuration(timeouts[field].(string)); err != nil || d < contract.LongestRequest {
					t.Errorf("the HTTPRoute's timeout %s is %v, want at least %v", field, timeouts[field], contract.LongestRequest)
				}
			}
		})
	}
}

func TestTheRolloutHash(t *testing.T) {
	t.Parallel()
	hash := func(change func(*build.Input)) string {
		in := fixtures(t)["full"]
		change(&in)
		return into[appsv1.Deployment](t, single(t, build.Objects(in), "Deployment")).Spec.Template.Annotations[build.AnnotationRollout]
	}
	same := hash(func(*build.Input) {})
	tests := map[string]struct {
		change func(*build.Input)
		equal  bool
	}{
		"ignores order":                            {func(in *build.Input) { slices.Reverse(in.Rollout) }, true},
		"ignores repetitions":                      {func(in *build.Input) { in.Rollout = append(in.Rollout, in.Rollout[0]) }, true},
		"ignores what is in the pod template":      {func(in *build.Input) { in.Pool.Spec.Concurrency++ }, true},
		"changes with a Secret's resource version": {func(in *build.Input) { in.Rollout[0] += "8" }, false},
		"changes with another Secret":              {func(in *build.Input) { in.Rollout = append(in.Rollout, "Secret/x/y/1") }, false},
		"changes when two strings are joined":      {func(in *build.Input) { in.Rollout = []string{in.Rollout[1] + in.Rollout[0]} }, false},
		"changes with the list of endpoints":       {func(in *build.Input) { in.Pool.Spec.Solana.Endpoints[0].RequestsPerSecond++ }, false},
		"changes with the list of signers":         {func(in *build.Input) { in.Pool.Spec.FeePayers.Signers[0].VaultTransit.KeyVersion++ }, false},
		"changes with the service account's annotations": {func(in *build.Input) {
			in.Pool.Spec.Template.ServiceAccountAnnotations = map[string]string{"a": "b"}
		}, false},
		"changes with the sign-in messages": {func(in *build.Input) { in.Pool.Spec.ViewingKeys.Messages[0] += "." }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := hash(tc.change) == same; got != tc.equal {
				t.Errorf("the hash is the same: %t, want %t", got, tc.equal)
			}
		})
	}
}

func TestTheInputIsNotChanged(t *testing.T) {
	t.Parallel()
	for name, in := range fixtures(t) {
		before := in
		before.Pool = in.Pool.DeepCopy()
		before.Payers, before.Rollout = slices.Clone(in.Payers), slices.Clone(in.Rollout)
		slices.Reverse(before.Payers)
		slices.Reverse(in.Payers)
		everything(t, in)
		if diff := cmp.Diff(before, in); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
}

func TestAnEmptyPeerListAllowsNoPeer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*build.Input)
		// want are the open ports, and the number of peers of each: 0 means all.
		want map[int32]int
	}{
		"operator and named peers reach operations": {func(*build.Input) {}, map[int32]int{8080: 1, 9090: 2}},
		"an operator outside of the cluster":        {func(in *build.Input) { in.OperatorNamespace = "" }, map[int32]int{8080: 1, 9090: 1}},
		"without peers, the port is closed": {func(in *build.Input) {
			in.OperatorNamespace, in.Pool.Spec.NetworkPolicy.OperationsFrom = "", nil
		}, map[int32]int{8080: 1}},
		"the API is open to all by default": {func(in *build.Input) { in.Pool.Spec.NetworkPolicy.APIFrom = nil }, map[int32]int{8080: 0, 9090: 2}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fixtures(t)["full"]
			tc.change(&in)
			got := map[int32]int{}
			for _, rule := range into[networkingv1.NetworkPolicy](t, single(t, build.Objects(in), "NetworkPolicy")).Spec.Ingress {
				got[rule.Ports[0].Port.IntVal] = len(rule.From)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ports and peers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryObjectCarriesNameNamespaceAndLabels(t *testing.T) {
	t.Parallel()
	for name, in := range fixtures(t) {
		objects := append(build.Objects(in), build.RotationJob(in, build.Rotation{Step: build.StepFund, Revision: 1}))
		seen := map[string]bool{}
		for _, o := range objects {
			u := asUnstructured(t, o)
			if u.GroupVersionKind() != o.Kind || u.GetName() != o.Name || u.GetNamespace() != in.Pool.Namespace {
				t.Errorf("%s: %s %s says that it is %s %s/%s", name, o.Kind.Kind, o.Name, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
			}
			want := build.Labels(in.Pool.Name)
			if o.Kind == build.KindJob {
				want[build.LabelComponent] = build.ComponentRotation
			}
			for key, value := range want {
				if u.GetLabels()[key] != value {
					t.Errorf("%s: %s: label %s is %q, want %q", name, o.Kind.Kind, key, u.GetLabels()[key], value)
				}
			}
			if !slices.Contains(build.Kinds(), o.Kind) {
				t.Errorf("%s: %s is not among the kinds, so that it would never be pruned", name, o.Kind)
			}
			if id := o.Kind.String() + o.Name; seen[id] {
				t.Errorf("%s: %s is made twice", name, id)
			} else {
				seen[id] = true
			}
		}
	}
}
