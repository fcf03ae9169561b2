package panics_test

import (
	"strings"
	"testing"

	"github.com/relaypool/relaypool/relay/internal/panics"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		panics func()
		want   string
	}{
		"a runtime error in its own words": {func() { s := []int{}; _ = s[index()] }, "runtime error: index out of range [7] with length 0"},
		"a text by its type alone":         {func() { panic("canary") }, "value of type string"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if got := panics.Describe(recover()); got != test.want {
					t.Errorf("described as %q, want %q", got, test.want)
				}
			}()
			test.panics()
		})
	}
}

func index() int { return 7 }

func deep(secret string) { panic(secret) }

func TestCallersNameTheFunctionAndNoArgument(t *testing.T) {
	t.Parallel()
	defer func() {
		_ = recover()
		all := strings.Join(panics.Callers(0), "\n")
		if !strings.Contains(all, "panics_test.deep ") || strings.Contains(all, "0x") {
			t.Errorf("the stack is\n%s\nwant the function that panicked, without arguments", all)
		}
	}()
	deep("canary")
}
