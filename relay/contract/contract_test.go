package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/openapi/spec"
)

func TestAPIPathsMatchTheOpenAPIDocument(t *testing.T) {
	t.Parallel()
	doc, err := spec.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(maps.Keys(doc.Paths.Map()))
	got := slices.Sorted(slices.Values(contract.APIPaths()))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-relay/openapi.yaml +contract):\n%s", diff)
	}
}

// Tests of other packages go through the lists, so they would not check a name that is missing
// from its list.
func TestListsAreComplete(t *testing.T) {
	t.Parallel()
	metrics := make([]string, 0, len(contract.Metrics()))
	for _, m := range contract.Metrics() {
		metrics = append(metrics, m.Name)
	}
	tests := map[string]struct {
		file, prefix string
		form         *regexp.Regexp
		got          []string
	}{
		"environment variables": {"environment.go", "Env", regexp.MustCompile(`^RELAYPOOL_[A-Z]+(_[A-Z]+)*$`), contract.EnvironmentVariables()},
		"metrics":               {"metrics.go", "Metric", regexp.MustCompile(`^relaypool_[a-z]+(_[a-z]+)*$`), metrics},
		"paths":                 {"httppaths.go", "", regexp.MustCompile(`^/[a-z_/{}-]*$`), append(contract.APIPaths(), contract.MetricsPath, contract.LivenessPath, contract.ReadinessPath)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			declared := declaredStrings(t, tc.file, tc.prefix, tc.form)
			if diff := cmp.Diff(declared, slices.Sorted(slices.Values(tc.got))); diff != "" {
				t.Errorf("names (-declared in %s +listed):\n%s", tc.file, diff)
			}
		})
	}
}

// declaredStrings returns, sorted, the first string of each constant or variable
// whose name starts with prefix and whose value has the form.
func declaredStrings(t *testing.T, file, prefix string, form *regexp.Regexp) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		declared, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(declared.Names[0].Name, prefix) {
			return true
		}
		value := declared.Values[0]
		if composite, ok := value.(*ast.CompositeLit); ok {
			value = composite.Elts[0]
		}
		literal, ok := value.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return false
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		if form.MatchString(text) {
			out = append(out, text)
		} else if prefix != "" {
			t.Errorf("%s is %q: want the form %s", declared.Names[0].Name, text, form)
		}
		return false
	})
	slices.Sort(out)
	return out
}

func TestTerminationGraceCoversEveryPhase(t *testing.T) {
	t.Parallel()
	phases := map[string]time.Duration{
		"pre-stop":      contract.PreStop,
		"HTTP shutdown": contract.HTTPShutdown,
		"queue stop":    contract.QueueStop,
		"hand-over":     contract.HandOver,
		"margin":        contract.Margin,
	}
	left := contract.TerminationGrace
	for name, d := range phases {
		if d <= 0 || d%time.Second != 0 {
			t.Errorf("%s lasts %s: want whole seconds above zero", name, d)
		}
		left -= d
	}
	if left < 0 {
		t.Errorf("the phases take %s longer than the grace period of %s", -left, contract.TerminationGrace)
	}
}

func TestVersionHasThreeParts(t *testing.T) {
	t.Parallel()
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(contract.Version) {
		t.Errorf("version %q: want X.Y.Z", contract.Version)
	}
}
