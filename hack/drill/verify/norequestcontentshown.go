package verify

// noContentLeaked checks invariant 9.
func noContentLeaked(e *Evidence, r *Result) {
	r.Examined = int(e.Scanned)
	for _, leak := range e.Leaks {
		r.fault("%s:%d holds a part of a %s", leak.Source, leak.Line, leak.What)
	}
}
