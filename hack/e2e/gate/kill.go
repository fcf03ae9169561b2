package gate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// KillContainer ends every process of a container with SIGKILL, as a kernel without free
// memory does. proc is the folder of the node's processes: the caller has to be in the
// node's process namespace. It returns the ids of the ended processes, and an error if
// there are none.
func KillContainer(proc, container string) (killed []int, err error) {
	if container == "" {
		return nil, errors.New("the container's id is empty: name the container to kill")
	}
	members, err := processesOf(proc, container)
	if err != nil {
		return nil, err
	}
	for _, pid := range members {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return killed, fmt.Errorf("kill process %d: %w", pid, err)
		}
		killed = append(killed, pid)
	}
	if len(killed) == 0 {
		return nil, fmt.Errorf("no process on this node belongs to container %s: is it another node's, or has it ended?", container)
	}
	return killed, nil
}

// processesOf finds a container's processes by their control groups, whose paths have the
// container's id under every runtime and version.
func processesOf(proc, container string) (pids []int, err error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("list the node's processes: %w", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		groups, err := os.ReadFile(filepath.Join(proc, entry.Name(), "cgroup"))
		if err == nil && strings.Contains(string(groups), container) { // an ended process has no file
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
