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

func TestAPIPathsAreThoseOfTheDocument(t *testing.T) {
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

// The lists are what other packages' tests go by, so a constant that is missing
// from its list would be held against nothing.
func TestListsAreComplete(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file, prefix string
		form         *regexp.Regexp
		got          []string
	}{
		"environment variables": {"environment.go", "Env", regexp.MustCompile(`^RELAYPOOL_[A-Z]+(_[A-Z]+)*$`), contract.EnvironmentVariables()},
		"metrics":               {"metrics.go", "Metric", regexp.MustCompile(`^relaypool_[a-z]+(_[a-z]+)*$`), contract.MetricNames()},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := constants(t, tc.file, tc.prefix)
			if diff := cmp.Diff(want, slices.Sorted(slices.Values(tc.got))); diff != "" {
				t.Errorf("list (-constants +list):\n%s", diff)
			}
			for _, v := range tc.got {
				if !tc.form.MatchString(v) {
					t.Errorf("%q: want the form %s", v, tc.form)
				}
			}
		})
	}
}

// constants gives the sorted values of a file's string constants whose name has the prefix.
func constants(t *testing.T, file, prefix string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, prefix) || spec.Names[0].Name == "EnvPrefix" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, value)
		return true
	})
	slices.Sort(out)
	return out
}

func TestTerminationGraceCoversEveryPhase(t *testing.T) {
	t.Parallel()
	phases := map[string]time.Duration{
		"pre-stop":      contract.DrainPreStop,
		"HTTP shutdown": contract.DrainHTTPShutdown,
		"soft stop":     contract.DrainSoftStop,
		"hard grace":    contract.DrainHardGrace,
		"margin":        contract.DrainMargin,
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
