package gate_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/hack/e2e/gate"
)

func TestKillEndsTheContainersProcessesAndNoOthers(t *testing.T) {
	t.Parallel()
	start := func() *exec.Cmd {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd
	}
	member, bystander := start(), start()
	proc := t.TempDir()
	for pid, group := range map[int]string{
		member.Process.Pid:    "0::/../../pod1/cri-containerd-abc123.scope\n",
		bystander.Process.Pid: "0::/../../pod1/cri-containerd-def456.scope\n",
	} {
		folder := filepath.Join(proc, strconv.Itoa(pid))
		if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "cgroup"), []byte(group), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	killed, err := gate.KillContainer(proc, "abc123")
	if err != nil || len(killed) != 1 || killed[0] != member.Process.Pid {
		t.Errorf("killed %v, error %v; want process %d", killed, err, member.Process.Pid)
	}
	if state, err := member.Process.Wait(); err != nil || !strings.Contains(state.String(), "killed") {
		t.Errorf("the container's process has the state %v, error %v; want a killed process", state, err)
	}
	if _, err := gate.KillContainer(proc, "nothing"); err == nil || !strings.Contains(err.Error(), "no process") {
		t.Errorf("an unknown container gives error %v, want one with \"no process\"", err)
	}
	if _, err := gate.KillContainer(proc, ""); err == nil {
		t.Error("an empty id, which is a part of every path, gives no error")
	}
}
