package monitoring_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"testing"
)

const promtoolPackage = "github.com/prometheus/prometheus/cmd/promtool"

// promtool is built once for each version, from its own module, and kept with the
// other tools. Without service discoveries, which rules do not need, it takes two
// minutes instead of ten.
var promtool = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	pinned, err := os.ReadFile("../tools/prometheus/go.mod")
	if err != nil {
		return "", err
	}
	version := regexp.MustCompile(`github\.com/prometheus/prometheus (v\S+)`).FindSubmatch(pinned)
	if version == nil {
		return "", errors.New("hack/tools/prometheus/go.mod does not name Prometheus")
	}
	program := filepath.Join(cache, "relaypool", "tools", "promtool-"+string(version[1])+"-"+runtime.Version())
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	// Build to another name first: a concurrent run could start a half-written file.
	temporary := fmt.Sprintf("%s.%d", program, os.Getpid())
	command := exec.Command("go", "build", "-tags", "remove_all_sd", "-o", temporary, promtoolPackage)
	command.Dir = "../tools/prometheus"
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, os.Rename(temporary, program)
})

// The tests parse rules and evaluate dashboards with the same version of Prometheus as promtool.
func TestPromtoolHasTheVersionOfTheLibrary(t *testing.T) {
	t.Parallel()
	found := map[string]string{}
	for _, file := range []string{"go.mod", "../tools/prometheus/go.mod"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found[file] = string(regexp.MustCompile(`github\.com/prometheus/prometheus v\S+`).Find(content))
	}
	if found["go.mod"] == "" || found["go.mod"] != found["../tools/prometheus/go.mod"] {
		t.Errorf("versions %q, want the same", found)
	}
}

// runPromtool fails the test with the output of a failed promtool.
func runPromtool(t *testing.T, args ...string) {
	t.Helper()
	program, err := promtool()
	if err != nil {
		t.Fatalf("build %s: %v", promtoolPackage, err)
	}
	command := exec.CommandContext(t.Context(), program, args...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		t.Errorf("promtool %s: %v\n%s", args[0], err, out.String())
	}
}

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
