package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
)

// recoverPanic answers a panic as an internal error. It logs neither the
// panic's value nor the arguments on its stack: they may contain parts of the
// request.
func (a *api) recoverPanic(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				a.panicked(w, r, v)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func (a *api) panicked(w http.ResponseWriter, r *http.Request, v any) {
	const skip = 4 // Callers, this function, its caller and the panic itself
	stack := callers(skip)
	if p, ok := v.(*panicApart); ok {
		v, stack = p.value, p.stack
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	a.Log.ErrorContext(r.Context(), "request panicked",
		"request_id", requestContextOf(r.Context()).id, "panic", describePanic(v), "at", functions(stack))
	a.internal(w, r)
}

// describePanic returns a runtime error's text, which contains only lengths and types.
// For any other value it returns only the type.
func describePanic(v any) string {
	if err, ok := v.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("value of type %T", v)
}

// functions lists the functions on the stack of a panic, the innermost first, each with its
// file:line and without its arguments.
func functions(stack []uintptr) []string {
	frames := runtime.CallersFrames(stack)
	var at []string
	for {
		f, more := frames.Next()
		at = append(at, fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line))
		if !more {
			return at
		}
	}
}
