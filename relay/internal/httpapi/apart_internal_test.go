package httpapi

import (
	"runtime"
	"strings"
	"testing"
)

func TestApartReturnsWhenTheFunctionHasEnded(t *testing.T) {
	t.Parallel()
	tests := map[string]func(){"returns": func() {}, "ends its goroutine": runtime.Goexit}
	for name, end := range tests {
		t.Run("a function that "+name, func(t *testing.T) {
			t.Parallel()
			result := 0
			apart(func() {
				result = 1
				end()
			})
			if result != 1 {
				t.Errorf("result %d, want what the function set, 1", result)
			}
		})
	}
}

func TestAPanicGoesOnInTheCaller(t *testing.T) {
	t.Parallel()
	const want = "the panic's value"
	defer func() {
		p, ok := recover().(*panicApart)
		if !ok || p.value != want {
			t.Fatalf("recovered %v, want a *panicApart of the value", p)
		}
		innermost, _ := runtime.CallersFrames(p.stack).Next()
		if !strings.HasSuffix(innermost.Function, "panics") {
			t.Errorf("the stack begins with %s, want the function that panicked", innermost.Function)
		}
	}()
	apart(func() { panics(want) })
	t.Error("apart returned, want its panic")
}

//go:noinline
func panics(v any) { panic(v) }
