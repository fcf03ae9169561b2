package swap_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/swap"
)

// TestListsAreComplete: a value that is missing from its list would have no metric or
// count as unknown.
func TestListsAreComplete(t *testing.T) {
	t.Parallel()
	parsed, err := parser.ParseFile(token.NewFileSet(), "routererrors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for prefix, listed := range map[string][]string{"Fault": swap.RouterFaults(), "Code": swap.NoRouteCodes(), "Rejected": swap.RejectedReasons()} {
		var declared []string
		ast.Inspect(parsed, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(v.Names[0].Name, prefix) {
				return true
			}
			literal, ok := v.Values[0].(*ast.BasicLit)
			if !ok {
				t.Fatalf("%s is not a string literal", v.Names[0].Name)
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, text)
			return false
		})
		if len(declared) == 0 {
			t.Fatalf("no constant begins with %s, want at least one", prefix)
		}
		slices.Sort(declared)
		if diff := cmp.Diff(declared, slices.Sorted(slices.Values(listed))); diff != "" {
			t.Errorf("%s (-declared +listed):\n%s", prefix, diff)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err             error
		want            string
		wantUnavailable bool
		wantCancelled   bool
	}{
		"a kind without a detail":      {err: &swap.RouterUnavailable{Kind: swap.FaultTimeout}, want: "swap router is unavailable: timeout", wantUnavailable: true},
		"a kind with a detail":         {err: &swap.RouterUnavailable{Kind: swap.FaultServerError, Detail: "HTTP 502"}, want: "swap router is unavailable: server_error: HTTP 502", wantUnavailable: true},
		"a caller who stopped waiting": {err: &swap.RouterUnavailable{Kind: swap.FaultCancelled, Err: context.Canceled}, want: "swap router is unavailable: cancelled", wantUnavailable: true, wantCancelled: true},
		"a code":                       {err: swap.NewNoRoute("NO_ROUTES_FOUND"), want: "the swap router has no such swap: NO_ROUTES_FOUND"},
		"an unknown code":              {err: swap.NewNoRoute("7 of So111"), want: "the swap router has no such swap: OTHER"},
		"an answer to another request": {err: &swap.RejectedRoute{What: swap.RejectedAmount}, want: "the swap router's answer contradicts the request: amount"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrapped := fmt.Errorf("quote: %w", test.err)
			if got := test.err.Error(); got != test.want {
				t.Errorf("text is %q, want %q", got, test.want)
			}
			if got := errors.Is(wrapped, swap.ErrRouterUnavailable); got != test.wantUnavailable {
				t.Errorf("unavailable: %t, want %t", got, test.wantUnavailable)
			}
			if got := errors.Is(wrapped, context.Canceled); got != test.wantCancelled {
				t.Errorf("cancelled: %t, want %t", got, test.wantCancelled)
			}
		})
	}
}
