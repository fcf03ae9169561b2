// Package panics tells of a recovered panic without what it may hold of a
// request: a panic's value, and the arguments on its stack, can be anything.
package panics

import (
	"fmt"
	"runtime"
)

// Describe tells a runtime error in its own words, which speak of lengths and
// types, and of anything else the type alone.
func Describe(v any) string {
	if err, ok := v.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("value of type %T", v)
}

// Callers lists the functions on the stack, from the one that recovers down to
// at most 32, as name and file:line, without arguments. skip leaves out so many
// above the caller of Callers.
func Callers(skip int) []string {
	const most = 32
	pcs := make([]uintptr, most)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(skip+2, pcs)])
	var at []string
	for {
		f, more := frames.Next()
		at = append(at, fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line))
		if !more {
			return at
		}
	}
}
