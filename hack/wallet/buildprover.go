package wallet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const modulePath = "github.com/relaypool/relaypool"

// build returns the path of the circuit's program. It builds the program unless the cache has it
// for the current sources.
func build(ctx context.Context, source, cache string, progress io.Writer) (string, error) {
	sum, err := hashSources(source)
	if err != nil {
		return "", fmt.Errorf("read the circuit's sources: %w", err)
	}
	folder := filepath.Join(cache, "bin", sum)
	program := filepath.Join(folder, "circuit")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", fmt.Errorf("make the cache folder of the circuit's program: %w", err)
	}
	fmt.Fprintln(progress, "wallet: building the circuit's program; the first time this fetches and compiles gnark, which takes a minute")
	temporary := fmt.Sprintf("%s.%d", program, os.Getpid())
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", temporary, ".")
	cmd.Dir = source
	// The circuit is a module of its own, to which the caller's workspace and flags do not apply.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the circuit's program in %s: %w\n%s", source, err, output)
	}
	// The rename is atomic, so that no process starts an incomplete program.
	if err := os.Rename(temporary, program); err != nil {
		return "", fmt.Errorf("cache the circuit's program: %w", err)
	}
	return program, nil
}

// hashSources hashes what the program is built from: its sources, the Go version and the
// platform.
func hashSources(source string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	files := os.DirFS(source)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := entry.Name()
		isCode := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		if !isCode && name != "go.mod" && name != "go.sum" {
			return nil
		}
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d\n", path, len(content))
		h.Write(content)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// findSource asks the go command for the checkout around the working folder, and returns its folder
// hack/circuit.
func findSource(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err != nil {
		return "", fmt.Errorf("find the checkout of %s (run inside it, or set Options.Source): %w", modulePath, err)
	}
	return filepath.Join(strings.TrimSpace(string(output)), "hack", "circuit"), nil
}

// lockPoll is the interval between attempts to get a lock that another process holds.
const lockPoll = 50 * time.Millisecond

// lock waits until no other process builds the program or makes its keys. Without the lock, test
// binaries that start at the same time would each do the same minute of work.
func lock(ctx context.Context, folder string) (unlock func(), err error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, fmt.Errorf("make the circuit's cache folder: %w", err)
	}
	fileLock := flock.New(filepath.Join(folder, "lock"))
	if _, err := fileLock.TryLockContext(ctx, lockPoll); err != nil {
		return nil, fmt.Errorf("lock the circuit's cache: %w", err)
	}
	return func() { _ = fileLock.Unlock() }, nil
}
