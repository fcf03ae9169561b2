package httpapi

import (
	"bytes"
	"runtime"
	"syscall"
)

// memory holds bytes outside Go's heap. Go lets its heap grow to twice what it holds, which would
// double the memory of the cached chunks. The bytes are freed once nothing refers to the memory;
// so only its methods may touch them.
type memory struct{ mapped []byte }

// newMemory copies a text, which is not empty. If the system has no memory outside the heap, the
// copy is on it.
func newMemory(text []byte) *memory {
	mapped, err := syscall.Mmap(-1, 0, len(text), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return &memory{bytes.Clone(text)}
	}
	copy(mapped, text)
	m := &memory{mapped}
	runtime.AddCleanup(m, func(mapped []byte) { _ = syscall.Munmap(mapped) }, mapped) // fails for what is not mapped only
	return m
}

// size is 0 for no memory.
func (m *memory) size() int {
	if m == nil {
		return 0
	}
	return len(m.mapped)
}

// appendTo appends a copy of the bytes [from, end) to the text.
func (m *memory) appendTo(text []byte, from, end int) []byte {
	if m == nil {
		return text
	}
	text = append(text, m.mapped[from:end]...)
	runtime.KeepAlive(m)
	return text
}
