package refusal_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
)

// TestAllListsEveryCode reads the source, because a constant that was left out
// of the table would be answered as the relay's own fault.
func TestAllListsEveryCode(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "refusal.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared int
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			t.Fatalf("%s is no literal", spec.Names[0].Name)
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		declared++
		if !slices.Contains(refusal.All(), refusal.Code(text)) {
			t.Errorf("%s is missing from the table of statuses", spec.Names[0].Name)
		}
		return true
	})
	if want := len(refusal.All()); declared != want {
		t.Errorf("%d codes are declared, %d are in the table", declared, want)
	}
}

func TestHTTPStatusOfAnUndocumentedCode(t *testing.T) {
	t.Parallel()
	if got := refusal.Code("no_such_code").HTTPStatus(); got != http.StatusInternalServerError {
		t.Errorf("status %d, want 500: an undocumented code is the relay's fault, not the client's", got)
	}
}

func TestRefusalCopies(t *testing.T) {
	t.Parallel()
	cause := errors.New("the cause")
	first := refusal.New(refusal.PoolBusy, "busy with %d", 3)
	second := first.With("a", 1).Retry(time.Second).Because(cause)
	third := second.With("b", 2)
	if first.Fields != nil || first.RetryAfter != 0 || first.Cause != nil {
		t.Errorf("the first refusal was changed: %+v", first)
	}
	if len(second.Fields) != 1 || len(third.Fields) != 2 {
		t.Errorf("fields %v and %v, want one and two", second.Fields, third.Fields)
	}
	if !errors.Is(third, cause) || third.RetryAfter != time.Second || third.Error() != "pool_busy: busy with 3: "+cause.Error() {
		t.Errorf("the third refusal lost something: %v", third)
	}
	if found, ok := refusal.As(errors.Join(errors.New("other"), third)); !ok || found != third {
		t.Error("As does not find the refusal in a chain")
	}
}
