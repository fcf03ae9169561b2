package process

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// roleArgument is the prefix of an argument that makes the test binary play a role as a
// child. A RELAYPOOL_ variable would not work, because Start removes those variables.
const roleArgument = "test-child="

func TestMain(m *testing.M) {
	for _, arg := range os.Args[1:] {
		if role, ok := strings.CutPrefix(arg, roleArgument); ok {
			playRole(role)
			return
		}
	}
	os.Exit(m.Run())
}

func playRole(role string) {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	switch role {
	case "a program that ends by itself":
		fmt.Println("first line")
		fmt.Fprintln(os.Stderr, "last words")
		os.Exit(3)
	case "a program that shows its environment":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "a program that stops when asked":
		fmt.Println("ready")
		<-terminated
	case "a program that does not stop":
		fmt.Println("ready")
		select {}
	case "a parent":
		p, err := Start("the child", os.DevNull, os.Args[0], roleArgument+"a program that does not stop")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.pid)
		select {}
	}
}

// child starts the test binary in a role.
func child(t *testing.T, role string) *Process {
	t.Helper()
	p, err := Start("the child", filepath.Join(t.TempDir(), "child.log"), os.Args[0], roleArgument+role)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(0) })
	return p
}

// until waits until condition returns true. It fails the test after a minute.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting until %s", what)
		case <-tick.C:
		}
	}
}

func (p *Process) output(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestExitErrorHasTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	p := child(t, "a program that ends by itself")
	until(t, "it has ended", func() bool { return p.Ended() != nil })
	want := fmt.Sprintf("the child ended by itself (exit status 3); the end of %s:\n  first line\n  last words", p.log)
	if diff := cmp.Diff(want, p.Ended().Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if err := p.Stop(time.Second); err != nil {
		t.Errorf("stop after the end: %v", err)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		role string
		want string
	}{
		"a program that stops when asked is not killed":         {"a program that stops when asked", ""},
		"a program that does not stop is killed, with an error": {"a program that does not stop", "did not stop within 200ms and was killed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := child(t, tc.role)
			until(t, "it is ready", func() bool { return p.output(t) == "ready\n" })
			grace := time.Minute
			if tc.want != "" {
				grace = 200 * time.Millisecond
			}
			err := p.Stop(grace)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
			if p.Ended() == nil {
				t.Error("the child still runs after Stop")
			}
		})
	}
	var nilProcess *Process
	if err := nilProcess.Stop(0); err != nil {
		t.Errorf("stop a nil process: %v", err)
	}
}

func TestChildrenDoNotInheritRelaySettings(t *testing.T) {
	t.Setenv("RELAYPOOL_LISTEN", "0.0.0.0:1")
	t.Setenv("OTHER_VARIABLE", "kept")
	p := child(t, "a program that shows its environment")
	until(t, "it has ended", func() bool { return p.Ended() != nil })
	env := strings.Split(p.output(t), "\n")
	if !slices.Contains(env, "OTHER_VARIABLE=kept") {
		t.Error("OTHER_VARIABLE is missing from the child's environment")
	}
	for _, v := range env {
		if strings.HasPrefix(v, "RELAYPOOL_") {
			t.Errorf("the child inherits %s", v)
		}
	}
}

func TestStartWithoutTheProgramFails(t *testing.T) {
	t.Parallel()
	_, err := Start("the child", filepath.Join(t.TempDir(), "child.log"), filepath.Join(t.TempDir(), "missing"))
	if err == nil || !strings.Contains(err.Error(), "start the child: ") {
		t.Errorf("got error %v, want one that names the child", err)
	}
}

func TestAKilledParentLeavesNoChild(t *testing.T) {
	t.Parallel()
	if attributes().Pdeathsig != syscall.SIGKILL {
		t.Fatal("Pdeathsig is not SIGKILL: children outlive their parent")
	}
	parent := exec.Command(os.Args[0], roleArgument+"a parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the parent prints %q, want its child's process id", line)
	}
	if !running(pid) {
		t.Fatal("the child does not run")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	until(t, "the child has ended", func() bool { return !running(pid) })
}

// running reports whether a process runs. A zombie, which only waits to be reaped, does not.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
