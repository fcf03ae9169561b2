// Package apart keeps the stacks of waiting goroutines small. A goroutine's stack keeps about the
// size that its deepest call needed. To check, store or read a submission takes several times as
// much as to wait for its outcome, for which a relay may have thousands of goroutines.
package apart

import "runtime"

// deepest is how many functions of a panicking stack are kept.
const deepest = 24

// Panic is a panic of a function that Run ran: its value, and the functions on the stack, the
// innermost first.
type Panic struct {
	Value any
	Stack []uintptr
}

// Run calls f on a goroutine of its own, and returns when f has ended. If f panics, Run panics with
// a *Panic.
func Run(f func()) {
	ended := make(chan *Panic)
	go func() {
		defer close(ended)
		defer func() {
			if v := recover(); v != nil {
				const skip = 3 // Callers, this function and the panic itself
				stack := make([]uintptr, deepest)
				ended <- &Panic{v, stack[:runtime.Callers(skip, stack)]}
			}
		}()
		f()
	}()
	if p := <-ended; p != nil {
		panic(p)
	}
}
