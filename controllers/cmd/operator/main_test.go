package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
)

const canary = "c4n4ryc4n4ry"

// underTest is set in the environment of processes that must run the operator instead of
// its tests.
const underTest = "OPERATOR_UNDER_TEST"

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	if os.Getenv(underTest) != "" {
		main()
	}
	apiservertest.Main(m)
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// command runs one command line to its end.
func command(t *testing.T, in string, args ...string) (code int, out, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(&environment{Context: t.Context(), in: strings.NewReader(in), out: &o, err: &e}, args)
	return code, o.String(), e.String()
}

// succeed runs a command that must not fail and returns its output.
func succeed(t *testing.T, in string, args ...string) string {
	t.Helper()
	code, out, stderr := command(t, in, args...)
	if code != 0 {
		t.Fatalf("operator %s: exit code %d, want 0: %s", args[0], code, stderr)
	}
	return out
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	noError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestHelpExplainsEveryFlagAndItsVariable(t *testing.T) {
	t.Parallel()
	out := succeed(t, "", "--help")
	for _, name := range contract.OperatorEnvironmentVariables() {
		flag := "--" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, contract.VariablePrefix), "_", "-"))
		if !strings.Contains(out, "[$"+name+"]") || !strings.Contains(out, flag) {
			t.Errorf("%s or %s is not in the help", flag, name)
		}
	}
	for _, want := range []string{"operator run", "operator plan --file=FILE", "operator version", "127.0.0.1:8443"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the help", want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if got, want := succeed(t, "", "version"), "operator "+contract.Version+" ("; !strings.HasPrefix(got, want) {
		t.Errorf("received %q, want %q and the build", got, want)
	}
	var got struct{ Version, Build string }
	noError(t, json.Unmarshal([]byte(succeed(t, "", "version", "--json")), &got))
	if got.Version != contract.Version || got.Build == "" {
		t.Errorf("received %+v, want version %s and a build", got, contract.Version)
	}
}

func TestUsageErrorsExitWith2(t *testing.T) {
	t.Parallel()
	minimal := "testdata/minimal.yaml"
	tests := map[string]struct {
		args []string
		want string
	}{
		"no command":                        {nil, `expected one of "run"`},
		"an unexpected argument":            {[]string{"run", canary}, "an argument that is neither"},
		"a flag without its value":          {[]string{"run", "--relay-image"}, "--relay-image"},
		"run without required flags":        {[]string{"run", "--kubeconfig=/nowhere"}, "the configuration has 4 problems:"},
		"run with a malformed number":       {[]string{"run", "--kubeconfig=/nowhere", "--check-workers=" + canary}, "the configuration has 5 problems:"},
		"plan without a file":               {[]string{"plan"}, "missing flags: --file"},
		"plan of a file that is not there":  {[]string{"plan", "-f", "/nowhere/pool.yaml"}, "no such file"},
		"plan of a file without RelayPools": {[]string{"plan", "-f", file(t, "apiVersion: v1\nkind: Secret\n")}, "expected a RelayPool of relaypool.dev/v1alpha1, found none"},
		"plan with unknown tenant fields":   {[]string{"plan", "-f", minimal, "--tenant-template-fields=" + canary}, "--tenant-template-fields ($RELAYPOOL_TENANT_TEMPLATE_FIELDS): field 1 of 1: expected all, none or one of"},
		"plan with an invalid image":        {[]string{"plan", "-f", minimal, "--relay-image=" + canary + " x"}, "--relay-image ($RELAYPOOL_RELAY_IMAGE): expected at most 512"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, stderr := command(t, "", tt.args...)
			if code != commandline.ExitUsage || out != "" || !strings.Contains(stderr, tt.want) || strings.Contains(stderr, canary) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d, empty, %q without the value", code, out, stderr, commandline.ExitUsage, tt.want)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for name, remarks := range map[string][]string{
		"minimal": {"team/demo: until the pool is initialised", "team/demo: a key is made in each of the Secrets demo-payer-2-0, demo-payer-2-1", "left out 1 documents"},
		"keda":    {"default/busy: spec.paused is set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, stderr := command(t, "", "plan", "-f", "testdata/"+name+".yaml", "--relay-image=registry.example/relay:1")
			if code != 0 {
				t.Fatalf("exit code %d, want 0: %s", code, stderr)
			}
			for _, want := range remarks {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q is not in stderr: %s", want, stderr)
				}
			}
			golden := "testdata/" + name + ".golden.yaml"
			if *update {
				noError(t, os.WriteFile(golden, []byte(out), 0o644))
				return
			}
			want, err := os.ReadFile(golden)
			noError(t, err)
			if diff := cmp.Diff(string(want), out); diff != "" {
				t.Errorf("run go test ./controllers/cmd/operator -run TestPlan -update if that is right (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanReadsStandardInput(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/minimal.yaml")
	noError(t, err)
	if diff := cmp.Diff(succeed(t, "", "plan", "-f", "testdata/minimal.yaml"), succeed(t, string(content), "plan", "-f", "-")); diff != "" {
		t.Errorf("plans (-file +standard input):\n%s", diff)
	}
}

func TestAPlanOfARefusedPoolExitsWith1(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/minimal.yaml")
	noError(t, err)
	in := strings.Replace(string(content), "replicas: 3", "replicas: 3\n  autoscaling: {maxReplicas: 4}", 1)
	code, out, stderr := command(t, in, "plan", "-f", "-")
	if code != commandline.ExitFailed || out != "" || !strings.Contains(stderr, "RelayPool demo would be refused") || !strings.Contains(stderr, "replicas and autoscaling exclude each other") {
		t.Errorf("exit code %d, stdout %q, stderr %q; want code 1, no stdout and a refusal that names replicas", code, out, stderr)
	}
}

// Values that the operator's settings do not allow are reported before anything is applied.
func TestAPlanObeysTheSettingsForTenants(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/minimal.yaml")
	noError(t, err)
	in := strings.Replace(string(content), "replicas: 3", "replicas: 3\n  image: evil.example/relay:1\n  template: {tolerations: [{operator: Exists}]}", 1)
	succeed(t, in, "plan", "-f", "-")
	succeed(t, string(content), "plan", "-f", "-", "--tenant-images=registry.example/relay", "--tenant-template-fields=none")
	for flag, want := range map[string]string{
		"--tenant-images=registry.example/relay": "spec.image: expected an image of registry.example/relay, received evil.example/relay",
		"--tenant-template-fields=labels":        "spec.template.tolerations: this operator lets RelayPools set only the fields labels",
	} {
		code, out, stderr := command(t, in, "plan", "-f", "-", flag)
		if code != commandline.ExitFailed || out != "" || !strings.Contains(stderr, "RelayPool demo would not be accepted: "+want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want %d, empty, %q", flag, code, out, stderr, commandline.ExitFailed, want)
		}
	}
}
