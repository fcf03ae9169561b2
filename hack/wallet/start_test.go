package wallet

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	module         = "module example.org/circuit\n\ngo 1.26\n"
	neverReady     = "package main\n\nimport \"io\"\nimport \"os\"\n\nfunc main() { io.Copy(io.Discard, os.Stdin) }\n"
	exiting        = "package main\n\nfunc main() {}\n"
	notJSON        = "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"hello\\n\") }\n"
	exitsWhenReady = "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"{\\\"ready\\\":true}\\n\"); os.Exit(3) }\n"
	uncompilable   = "package main\n\nfunc main() { undefined() }\n"
)

// source makes a folder with a Go program in place of the circuit.
func source(t *testing.T, program string) string {
	t.Helper()
	folder := t.TempDir()
	put(t, filepath.Join(folder, "go.mod"), module)
	put(t, filepath.Join(folder, "main.go"), program)
	return folder
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStartProverFails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		program string
		want    []string
	}{
		"with the compiler's output when the sources do not build": {uncompilable, []string{"main.go:3:15", "undefined: undefined"}},
		"when the program ends before it is ready":                 {exiting, []string{"read from the circuit's program", "EOF"}},
		"when the first line is not JSON":                          {notJSON, []string{"6 bytes that are not a JSON object"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := StartProver(t.Context(), Options{Progress: io.Discard, Source: source(t, tc.program), Cache: t.TempDir()})
			if err == nil {
				t.Fatalf("the prover started, want an error; close: %v", p.Close())
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want one with %q", err, want)
				}
			}
		})
	}
	if _, err := StartProver(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "Options.Progress is missing") {
		t.Errorf("without options: error %v, want one about Options.Progress", err)
	}
}

func TestStartProverStopsAtTheDeadline(t *testing.T) {
	t.Parallel()
	cache, folder := t.TempDir(), source(t, neverReady)
	if _, err := build(t.Context(), folder, cache, io.Discard); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := StartProver(ctx, Options{Progress: io.Discard, Source: folder, Cache: cache})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a program that is never ready: error %v, want deadline exceeded", err)
	}
}

func TestProveReportsAnExitedProgram(t *testing.T) {
	t.Parallel()
	p, err := StartProver(t.Context(), Options{Progress: io.Discard, Source: source(t, exitsWhenReady), Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, _, _, err := p.Prove(t.Context(), new(Witness)); !errors.Is(err, errStopped) {
			t.Errorf("error %v, want %v", err, errStopped)
		}
	}
	if err := p.Close(); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("close: error %v, want the program's exit status", err)
	}
}

func TestBuildCompilesChangedSources(t *testing.T) {
	t.Parallel()
	cache, folder := t.TempDir(), source(t, neverReady)
	buildProgram := func() (program string, compiled bool) {
		var progress strings.Builder
		program, err := build(t.Context(), folder, cache, &progress)
		if err != nil {
			t.Fatal(err)
		}
		return program, progress.Len() > 0
	}
	first, compiled := buildProgram()
	if !compiled {
		t.Error("with an empty cache the program was not compiled")
	}
	put(t, filepath.Join(folder, "main_test.go"), "package main\n")
	put(t, filepath.Join(folder, "README"), "words")
	if again, compiled := buildProgram(); compiled || again != first {
		t.Error("the program was compiled again after a change in a test and the README, want the cached program")
	}
	for _, path := range []string{"main.go", "inner/inner.go", "go.mod"} {
		before, err := os.ReadFile(filepath.Join(folder, path))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if path == "inner/inner.go" {
			before = []byte("package inner\n")
		}
		put(t, filepath.Join(folder, path), string(before)+"\n// changed\n")
		changed, compiled := buildProgram()
		if !compiled || changed == first {
			t.Errorf("the program was not compiled after a change in %s", path)
		}
		first = changed
	}
}

func TestLockExcludesASecondLock(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	unlock, err := lock(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, folder); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock: error %v, want deadline exceeded", err)
	}
	unlock()
	unlock, err = lock(t.Context(), folder)
	if err != nil {
		t.Fatalf("lock after the first lock was released: error %v, want none", err)
	}
	unlock()
}
