package imports

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	module = "github.com/relaypool/relaypool"
	root   = "../.."
)

// graph is what each package imports in its non-test files, by import path.
type graph map[string]node

type node struct {
	imports  []string
	standard bool
}

func TestImports(t *testing.T) {
	t.Parallel()
	packages := load(t)
	for sentence, r := range rules() {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			for _, violation := range check(packages, r) {
				t.Error(violation)
			}
		})
	}
}

// A rule that names a package which is no more would hold for ever.
func TestRulesNameExistingPackages(t *testing.T) {
	t.Parallel()
	packages := load(t)
	for _, named := range slices.Concat(adapters, domains, testSupport, wiring, shared, []string{"./api/...", "./config/crd", "./controllers/...", "./controllers/internal/build", "./api/v1alpha1/applyconfiguration/..."}) {
		exists := func(path string) bool { return packages.matches([]string{named}, path) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(packages)), exists) {
			t.Errorf("the rules name %s, but there is no such package: rename it in hack/imports/rules_test.go too", named)
		}
	}
}

// load asks the go command for every package of the module and all that they
// import.
func load(t *testing.T) graph {
	t.Helper()
	_ = os.Getenv("RELAYPOOL_SOURCES") // the cached result of a test that lists packages holds until this changes
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports,ImportMap,Standard", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	packages := graph{"C": {standard: true}} // cgo's, which go list does not describe
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
			ImportMap  map[string]string // vendored packages of the standard library
			Standard   bool
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for i, path := range p.Imports {
			if resolved, ok := p.ImportMap[path]; ok {
				p.Imports[i] = resolved
			}
		}
		packages[p.ImportPath] = node{p.Imports, p.Standard}
	}
	return packages
}

// check returns a sentence for each package and forbidden import, with the
// chain of imports that leads there.
func check(packages graph, r rule) []string {
	var violations []string
	for _, of := range slices.Sorted(maps.Keys(packages)) {
		if !packages.matches(r.of, of) || packages.matches(r.except, of) {
			continue
		}
		for _, chain := range packages.chains(of, r) {
			violations = append(violations, fmt.Sprintf("%s, which is not allowed because %s", strings.Join(chain, " imports "), r.why))
		}
	}
	return violations
}

// chains walks breadth first, so that each chain is a shortest one, and does
// not look behind a forbidden package: what that brings along is its fault.
func (g graph) chains(from string, r rule) [][]string {
	var found [][]string
	seen := map[string]bool{from: true}
	queue := [][]string{{from}}
	for len(queue) > 0 {
		chain := queue[0]
		queue = queue[1:]
		for _, path := range g[chain[len(chain)-1]].imports {
			if seen[path] {
				continue
			}
			seen[path] = true
			next := append(slices.Clone(chain), path)
			switch {
			case g.matches(r.forbid, path) && !g.matches(r.allow, path):
				for i := range next {
					next[i] = short(next[i])
				}
				found = append(found, next)
			case r.reach == links:
				queue = append(queue, next)
			}
		}
	}
	return found
}

// matches tells whether one of the patterns, explained at rule, covers path.
func (g graph) matches(patterns []string, path string) bool {
	for _, pattern := range patterns {
		switch {
		case pattern == "all", pattern == "std" && g[path].standard:
			return true
		}
		if rest, ok := strings.CutPrefix(pattern, "./"); ok {
			pattern = module + "/" + rest
		}
		parent, tree := strings.CutSuffix(pattern, "/...")
		if path == parent || tree && strings.HasPrefix(path, parent+"/") {
			return true
		}
	}
	return false
}

// short drops the module's name, for messages.
func short(path string) string {
	return strings.TrimPrefix(path, module+"/")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	packages := graph{
		module + "/a":        {imports: []string{module + "/b", "fmt"}},
		module + "/a/deeper": {imports: []string{"fmt"}},
		module + "/b":        {imports: []string{"example.com/far", module + "/c"}},
		module + "/c":        {imports: []string{"os/exec"}},
		module + "/ab":       {imports: []string{"os/exec"}},
		"example.com/far":    {imports: []string{"example.com/farther"}},
		"fmt":                {standard: true, imports: []string{"os"}},
		"os":                 {standard: true},
		"os/exec":            {standard: true},
	}
	tests := map[string]struct {
		rule rule
		want []string
	}{
		"a direct import": {
			rule: rule{of: []string{"./c"}, reach: imports, forbid: []string{"os/..."}, why: "so"},
			want: []string{"c imports os/exec, which is not allowed because so"},
		},
		"an import by way of another is linked": {
			rule: rule{of: []string{"./a"}, reach: links, forbid: []string{"os/exec"}, why: "so"},
			want: []string{"a imports b imports c imports os/exec, which is not allowed because so"},
		},
		"an import by way of another is not imported": {
			rule: rule{of: []string{"./a"}, reach: imports, forbid: []string{"os/exec"}},
		},
		"a tree binds the packages below but no namesake": {
			rule: rule{of: []string{"./a/..."}, reach: imports, forbid: []string{"fmt", "os/exec"}, why: "so"},
			want: []string{
				"a imports fmt, which is not allowed because so",
				"a/deeper imports fmt, which is not allowed because so",
			},
		},
		"an exception among the bound packages": {
			rule: rule{of: []string{"./..."}, except: []string{"./ab"}, reach: imports, forbid: []string{"os/exec"}, why: "so"},
			want: []string{"c imports os/exec, which is not allowed because so"},
		},
		"only the standard library": {
			rule: rule{of: []string{"./b", "./a/deeper"}, reach: links, forbid: []string{"all"}, allow: []string{"std"}, why: "so"},
			want: []string{
				"b imports example.com/far, which is not allowed because so",
				"b imports c, which is not allowed because so",
			},
		},
		"an allowed package among forbidden ones": {
			rule: rule{of: []string{"./a"}, reach: links, forbid: []string{"./..."}, allow: []string{"./b"}, why: "so"},
			want: []string{"a imports b imports c, which is not allowed because so"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, check(packages, tt.rule)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
