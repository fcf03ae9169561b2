package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The page has a section for each condition of a RelayPool, and names each reason and event,
// because users search for the names that kubectl shows.
func TestEveryConditionReasonAndEventIsExplained(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/reference/conditions.md")
	for name, value := range constants(t, "conditions.go") {
		switch {
		case strings.HasPrefix(name, "Condition"):
			if !strings.Contains(page, "\n## "+value+"\n") {
				t.Errorf("condition %s has no section in docs/reference/conditions.md", value)
			}
		case strings.HasPrefix(name, "Reason"):
			if !strings.Contains(page, "`"+value+"`") {
				t.Errorf("reason %s is not in docs/reference/conditions.md", value)
			}
		default:
			t.Errorf("conditions.go has %s, which is neither a condition nor a reason", name)
		}
	}
	_, events, _ := strings.Cut(page, "\n## Events\n")
	for _, value := range constants(t, "events.go") {
		if !strings.Contains(events, "`"+value+"`") {
			t.Errorf("event %s is not in docs/reference/conditions.md", value)
		}
	}
}

// constants returns the string constants in a file of api/v1alpha1 by their Go names.
func constants(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "api", "v1alpha1", file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			literal, ok := spec.Values[i].(*ast.BasicLit)
			if !ok {
				t.Fatalf("%s: %s is not a literal", file, name.Name)
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			out[name.Name] = value
		}
		return true
	})
	if len(out) == 0 {
		t.Fatalf("%s has no constants: the test would check nothing", file)
	}
	return out
}
