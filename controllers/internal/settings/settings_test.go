package settings

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/controllers/internal/tenancy"
	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
)

// canary is a value that a user sets by mistake. It must not be in an error or a log.
const canary = "canary-value"

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: ` + canary + `}}]
contexts: [{name: here, context: {cluster: c, user: u}}]
current-context: here
`

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load parses a command line and checks it. namespaceFile has the namespace of the pod, and
// is empty outside a pod.
func load(t *testing.T, namespaceFile string, args ...string) (*Config, error) {
	t.Helper()
	var flags Run
	malformed := commandline.NewMalformed()
	parser, err := kong.New(&flags, append(malformed.Options(), kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) { t.Error("exited") }))...)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		t.Fatal(err)
	}
	flags.EarlierProblems = malformed.Of(parsed.Flags())
	return flags.load(namespaceFile)
}

// validArgs returns a valid command line with the flags in more. It is for the whole cluster,
// unless more names namespaces.
func validArgs(t *testing.T, more ...string) []string {
	t.Helper()
	if !slices.ContainsFunc(more, func(arg string) bool { return strings.HasPrefix(arg, "--namespaces=") }) {
		more = append([]string{"--cluster-wide"}, more...)
	}
	return append([]string{"--kubeconfig=" + file(t, "config", kubeconfig), "--relay-image=registry.example/relay:1", "--operator-namespace=here"}, more...)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		flag       string
		want       string
		wantAbsent string
	}{
		"a kubeconfig that is not there":                   {"--kubeconfig=/nowhere/" + canary, "--kubeconfig ($RELAYPOOL_KUBECONFIG): the file cannot be used", ""},
		"a context that the file lacks":                    {"--context=" + canary, "--context ($RELAYPOOL_CONTEXT): the file has no context of that name", canary},
		"an image with a space":                            {"--relay-image=a " + canary, "--relay-image ($RELAYPOOL_RELAY_IMAGE): expected at most 512 characters without white space", canary},
		"a namespace in capitals":                          {"--namespaces=one,Two" + canary, "name 2 of 2: expected a namespace of at most 63 lower-case letters, digits and hyphens, received 15 characters of another form", canary},
		"a namespace named twice":                          {"--namespaces=one,two,one", "name 3 of 3 is there twice", ""},
		"neither namespaces nor cluster-wide":              {"--cluster-wide=false", "--namespaces ($RELAYPOOL_NAMESPACES): is missing: name the namespaces whose RelayPools the operator manages, or give --cluster-wide ($RELAYPOOL_CLUSTER_WIDE)", ""},
		"an image with a tag for tenants":                  {"--tenant-images=registry.example/relay,registry.example/" + canary + ":1", "--tenant-images ($RELAYPOOL_TENANT_IMAGES): repository 2 of 2: expected a repository without tag and digest", canary},
		"a field of the API that cannot be withheld":       {"--tenant-api-fields=service," + canary, "--tenant-api-fields ($RELAYPOOL_TENANT_API_FIELDS): field 2 of 2: expected all, none or one of service, ingress, gateway, received another value of 12 characters", canary},
		"a field that the template does not have":          {"--tenant-template-fields=labels," + canary, "--tenant-template-fields ($RELAYPOOL_TENANT_TEMPLATE_FIELDS): field 2 of 2: expected all, none or one of labels, annotations, serviceAccountAnnotations, resources, nodeSelector, tolerations, affinity, priorityClassName, podTemplate, received another value of 12 characters", canary},
		"all fields and a named field":                     {"--tenant-template-fields=all,labels", "all is given together with other fields", ""},
		"a usable Secret without its namespace":            {"--tenant-usable=" + canary, "--tenant-usable ($RELAYPOOL_TENANT_USABLE): name 1 of 1: expected NAMESPACE/NAME of a Secret or ConfigMap, such as payments/relay-credentials, received 12 characters of another form", canary},
		"usable Secrets although all are usable":           {"--tenant-usable=one/two", "is set, and --tenant-require-label ($RELAYPOOL_TENANT_REQUIRE_LABEL) is not", ""},
		"an operator's namespace with a slash":             {"--operator-namespace=a/" + canary, "--operator-namespace ($RELAYPOOL_OPERATOR_NAMESPACE): expected a namespace", canary},
		"no concurrent reconciles":                         {"--concurrent-reconciles=0", "--concurrent-reconciles ($RELAYPOOL_CONCURRENT_RECONCILES): expected 1 to 256, received 0", ""},
		"a number in words":                                {"--check-workers=" + canary, "--check-workers ($RELAYPOOL_CHECK_WORKERS): expected a whole number, received 12 characters that are not", canary},
		"a duration without a unit":                        {"--refs-interval=30", "--refs-interval ($RELAYPOOL_REFS_INTERVAL): expected a duration such as 30s", ""},
		"an interval of references that is too short":      {"--refs-interval=1ms", "expected 1s to 1h0m0s, received 1ms", ""},
		"a resync interval that is too long":               {"--resync=1000h", "--resync ($RELAYPOOL_RESYNC): expected 10s to 168h0m0s, received 1000h0m0s", ""},
		"metrics on a port without a host":                 {"--metrics-listen=8443", "--metrics-listen ($RELAYPOOL_METRICS_LISTEN): expected host:port, such as 127.0.0.1:8443, or none, received 4 characters", ""},
		"probes on a port that is too high":                {"--health-listen=:70000", "--health-listen ($RELAYPOOL_HEALTH_LISTEN): expected host:port", ""},
		"probes and metrics on one address":                {"--health-listen=127.0.0.1:8443", "is the same address as --metrics-listen", ""},
		"a folder without a certificate":                   {"--metrics-cert-dir=/nowhere", "the folder has no tls.crt that can be read", ""},
		"a certificate for metrics without TLS":            {"--metrics-cert-dir=/nowhere", "is a loopback address, which is served without TLS", ""},
		"a lease's name with a space":                      {"--lease-name=a " + canary, "--lease-name ($RELAYPOOL_LEASE_NAME): expected lower-case letters", canary},
		"a lease of half a second":                         {"--lease-duration=500ms", "--lease-duration ($RELAYPOOL_LEASE_DURATION): expected whole seconds, 1s to 1h, received 500ms", ""},
		"a renew deadline as long as the lease":            {"--lease-renew-deadline=15s", "expected less than --lease-duration ($RELAYPOOL_LEASE_DURATION), which is 15s", ""},
		"a retry period as long as the renew deadline":     {"--lease-retry-period=10s", "--lease-retry-period ($RELAYPOOL_LEASE_RETRY_PERIOD): expected more than 0s and less than 8.333333333s", ""},
		"external metrics on a port without a host":        {"--external-metrics-listen=6443", "--external-metrics-listen ($RELAYPOOL_EXTERNAL_METRICS_LISTEN): expected host:port, such as :6443, or none, received 4 characters", ""},
		"external metrics and metrics on one address":      {"--external-metrics-listen=127.0.0.1:8443", "is the same address as --metrics-listen", ""},
		"external metrics and probes on one address":       {"--external-metrics-listen=127.0.0.1:8081", "is the same address as --health-listen", ""},
		"an unknown log level":                             {"--log-level=" + canary, "--log-level ($RELAYPOOL_LOG_LEVEL): expected debug, info, warn or error, received another value of 12 characters", canary},
		"an unknown log format":                            {"--log-format=" + canary, "--log-format ($RELAYPOOL_LOG_FORMAT): expected auto, json or text", canary},
		"a leader election that is neither true nor false": {"--leader-elect=" + canary, "--leader-elect ($RELAYPOOL_LEADER_ELECT): expected true or false, received 12 characters", canary},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, "", validArgs(t, tt.flag)...)
			var problems commandline.Problems
			if !errors.As(err, &problems) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error is %v, want %q in it", err, tt.want)
			}
			if tt.wantAbsent != "" && strings.Contains(err.Error(), tt.wantAbsent) {
				t.Errorf("the value is in %v", err)
			}
		})
	}
}

// Two servers with the same text, none or port 0, do not share an address.
func TestDisabledListenersDoNotShareAnAddress(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"both are off":             {"--metrics-listen=none", "--health-listen=none"},
		"the system chooses ports": {"--metrics-listen=127.0.0.1:0", "--health-listen=127.0.0.1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := load(t, "", validArgs(t, flags...)...); err != nil {
				t.Errorf("the flags are refused: %v", err)
			}
		})
	}
}

func TestExternalMetricsFlagsAreCheckedOnlyWhenServed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ flag, want string }{
		"a Service with a dot":         {"--external-metrics-service=a." + canary, "--external-metrics-service ($RELAYPOOL_EXTERNAL_METRICS_SERVICE): expected the name of a Service"},
		"a Secret with a space":        {"--external-metrics-secret=a " + canary, "--external-metrics-secret ($RELAYPOOL_EXTERNAL_METRICS_SECRET): expected the name of a Secret"},
		"no namespace of the operator": {"--operator-namespace=", "is set, and --operator-namespace ($RELAYPOOL_OPERATOR_NAMESPACE) is not"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, "", validArgs(t, "--leader-elect=false", tt.flag)...)
			if err != nil {
				t.Errorf("without external metrics the error is %v", err)
			}
			_, err = load(t, "", validArgs(t, "--leader-elect=false", "--external-metrics-listen=:6443", tt.flag)...)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), canary) {
				t.Errorf("error is %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestAllFaultsAreReportedTogether(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	_, err := load(t, "", "--check-workers=many", "--resync=1s", "--log-level=loud")
	var problems commandline.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("error is %v, want commandline.Problems", err)
	}
	for _, flag := range []string{"kubeconfig", "relay-image", "namespaces", "operator-namespace", "check-workers", "resync", "log-level"} {
		if !slices.ContainsFunc(problems, func(p error) bool { return strings.HasPrefix(p.Error(), commandline.Setting(flag)+": ") }) {
			t.Errorf("no problem names --%s: %v", flag, err)
		}
	}
	if want := "the configuration has 7 problems:\n"; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error begins %q, want %q", err.Error()[:len(want)], want)
	}
}

func TestNamespacesAndClusterWideExcludeEachOther(t *testing.T) {
	t.Parallel()
	_, err := load(t, "", validArgs(t, "--namespaces=one,two", "--cluster-wide")...)
	if want := "--cluster-wide ($RELAYPOOL_CLUSTER_WIDE): is set, and --namespaces ($RELAYPOOL_NAMESPACES) names 2"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, want %q in it", err, want)
	}
}

func TestFlagsForTenantsMakeThePolicy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want tenancy.Policy
	}{
		"no flag is set":                     {nil, tenancy.Policy{}},
		"all fields":                         {[]string{"--tenant-template-fields=all"}, tenancy.Policy{}},
		"no field":                           {[]string{"--tenant-template-fields=none"}, tenancy.Policy{Withheld: tenancy.TemplateFields()}},
		"two fields":                         {[]string{"--tenant-template-fields=labels,resources"}, tenancy.Policy{Withheld: []string{"annotations", "serviceAccountAnnotations", "nodeSelector", "tolerations", "affinity", "priorityClassName", "podTemplate"}}},
		"images, which withhold podTemplate": {[]string{"--tenant-images=relaypool/relay,registry.example/team/*"}, tenancy.Policy{Images: []string{"docker.io/relaypool/relay", "registry.example/team/*"}, Withheld: []string{"podTemplate"}, WithheldAPI: tenancy.APIFields()}},
		"labelled objects and one without a label, which withhold podTemplate": {[]string{"--tenant-require-label", "--tenant-usable=one/two", "--tenant-template-fields=all"}, tenancy.Policy{RequireLabel: true, Usable: []string{"one/two"}, Withheld: []string{"podTemplate"}, WithheldAPI: tenancy.APIFields()}},
		"podTemplate by its name":                          {[]string{"--tenant-require-label", "--tenant-template-fields=" + strings.Join(tenancy.TemplateFields(), ",")}, tenancy.Policy{RequireLabel: true, Withheld: []string{}, WithheldAPI: tenancy.APIFields()}},
		"images, and all fields of the API by their names": {[]string{"--tenant-images=relaypool/relay", "--tenant-api-fields=service,ingress,gateway"}, tenancy.Policy{Images: []string{"docker.io/relaypool/relay"}, Withheld: []string{"podTemplate"}, WithheldAPI: []string{}}},
		"no field of the API":                              {[]string{"--tenant-api-fields=none"}, tenancy.Policy{Withheld: []string{"podTemplate"}, WithheldAPI: tenancy.APIFields()}},
		"a field of the API":                               {[]string{"--tenant-api-fields=gateway"}, tenancy.Policy{Withheld: []string{"podTemplate"}, WithheldAPI: []string{"service", "ingress"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := load(t, "", validArgs(t, tt.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, cfg.Tenants.Policy()); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamespaceOfTheOperator(t *testing.T) {
	t.Parallel()
	without := []string{"--kubeconfig=" + file(t, "config", kubeconfig), "--relay-image=registry.example/relay:1", "--cluster-wide"}
	pod := file(t, "namespace", "of-the-pod\n")
	tests := map[string]struct {
		namespaceFile string
		args          []string
		want          string
		wantErr       bool
	}{
		"in a pod it is the pod's":                             {pod, without, "of-the-pod", false},
		"the flag overrides the pod's":                         {pod, append(slices.Clone(without), "--operator-namespace=other"), "other", false},
		"outside a pod it is required":                         {"", without, "", true},
		"outside a pod without leader election it is optional": {"", append(slices.Clone(without), "--leader-elect=false"), "", false},
		"in a pod without leader election it is the pod's":     {pod, append(slices.Clone(without), "--leader-elect=false"), "of-the-pod", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := load(t, tt.namespaceFile, tt.args...)
			if tt.wantErr {
				if err == nil || !strings.Contains(err.Error(), "--operator-namespace ($RELAYPOOL_OPERATOR_NAMESPACE): is missing") {
					t.Errorf("error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if cfg.OperatorNamespace != tt.want {
				t.Errorf("namespace is %q, want %q", cfg.OperatorNamespace, tt.want)
			}
		})
	}
}

func TestTheClusterComesFromTheKubeconfig(t *testing.T) {
	t.Parallel()
	cfg, err := load(t, "", validArgs(t)...)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Rest.Host != "https://127.0.0.1:1" || cfg.Rest.QPS != -1 || !strings.HasPrefix(cfg.Rest.UserAgent, "relaypool-operator/") {
		t.Errorf("host %q, rate %v, user agent %q", cfg.Rest.Host, cfg.Rest.QPS, cfg.Rest.UserAgent)
	}
}

// The log has every flag by the name and in the form in which it is set. It has nothing of
// the client configuration, which may contain credentials.
func TestTheLogShowsEveryFlagAndNoCredentials(t *testing.T) {
	t.Parallel()
	cfg, err := load(t, "", validArgs(t, "--namespaces=one,two", "--lease-duration=20s")...)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("configuration loaded", "config", cfg)
	if strings.Contains(out.String(), canary) || strings.Contains(out.String(), "127.0.0.1:1\"") {
		t.Errorf("the log has %s", out.String())
	}
	for _, want := range []string{`"registry.example/relay:1"`, `"one,two"`, `"lease_name":"relaypool-operator"`, `"127.0.0.1:8443"`, `"lease_duration":"20s"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %s: %s", want, out.String())
		}
	}
	parser, err := kong.New(&Run{}, commandline.NewMalformed().Options()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range parser.Model.Flags {
		name := strings.ReplaceAll(f.Name, "-", "_")
		hidden := slices.Contains([]string{"help", "kubeconfig", "context"}, name)
		if shown := strings.Contains(out.String(), `"`+name+`":`); shown == hidden {
			t.Errorf("--%s is in the log: %t, want %t", f.Name, shown, !hidden)
		}
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&Run{}, commandline.NewMalformed().Options()...)
	if err != nil {
		t.Fatal(err)
	}
	var variables []string
	for _, f := range parser.Model.Flags {
		if f.Name == "help" {
			continue
		}
		if want := contract.VariablePrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")); !reflect.DeepEqual(f.Envs, []string{want}) {
			t.Errorf("--%s is read from %v, want %s", f.Name, f.Envs, want)
		}
		variables = append(variables, f.Envs...)
	}
	slices.Sort(variables)
	if diff := cmp.Diff(slices.Sorted(slices.Values(contract.OperatorEnvironmentVariables())), variables); diff != "" {
		t.Errorf("variables (-contract +flags):\n%s", diff)
	}
}
