package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Each condition of a RelayPool has a page, each reason a heading on one of
// them, and each event a line: whoever reads one in a terminal searches for it.
func TestEveryConditionReasonAndEventIsExplained(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	var headings []string
	for path, text := range docs {
		if strings.HasPrefix(path, "docs/conditions/") {
			headings = append(headings, anchors(text)...)
		}
	}
	for name, value := range constants(t, "conditions.go") {
		switch {
		case strings.HasPrefix(name, "Condition"):
			if docs["docs/conditions/"+value+".md"] == "" {
				t.Errorf("condition %s has no page docs/conditions/%s.md", value, value)
			}
		case strings.HasPrefix(name, "Reason"):
			if !slices.Contains(headings, strings.ToLower(value)) {
				t.Errorf("reason %s has no heading on a page of docs/conditions", value)
			}
		default:
			t.Errorf("conditions.go has %s, which is neither a condition nor a reason", name)
		}
	}
	for _, value := range constants(t, "events.go") {
		if !strings.Contains(docs["docs/conditions/events.md"], "`"+value+"`") {
			t.Errorf("event %s is not in docs/conditions/events.md", value)
		}
	}
}

// constants are a file's string constants of api/v1alpha1 by their Go names.
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
				t.Fatalf("%s: %s is no literal", file, name.Name)
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
		t.Fatalf("%s has no constants: the test would look at nothing", file)
	}
	return out
}
