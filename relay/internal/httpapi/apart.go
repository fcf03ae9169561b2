package httpapi

import "runtime"

// deepest is how many functions of a panicking stack are kept.
const deepest = 24

// panicApart is a panic of a function that apart ran: its value, and the functions on the stack, the
// innermost first.
type panicApart struct {
	value any
	stack []uintptr
}

// apart calls f on a goroutine of its own, and returns when f has ended. If f panics, apart panics with
// a *panicApart. A goroutine's stack stays about as large as its deepest call needed. To check a
// submission takes several times as much as to wait for its outcome, for which a relay may have
// thousands of goroutines.
func apart(f func()) {
	ended := make(chan *panicApart)
	go func() {
		defer close(ended)
		defer func() {
			if v := recover(); v != nil {
				const skip = 3 // Callers, this function and the panic itself
				ended <- &panicApart{v, callers(skip)}
			}
		}()
		f()
	}()
	if p := <-ended; p != nil {
		panic(p)
	}
}

// callers returns the functions on the stack without the innermost ones to skip, as runtime.Callers
// counts them in the caller.
func callers(skip int) []uintptr {
	stack := make([]uintptr, deepest)
	return stack[:runtime.Callers(skip+1, stack)]
}
