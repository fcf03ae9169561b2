//go:build unix && !linux

package postgres

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// parentDeathSignal says that the server ends with us however we end.
const parentDeathSignal = false

// serverAttributes puts the server into a process group of its own, so that
// Ctrl-C in a terminal reaches us alone and we stop it when its clients are
// done. This system has no parent-death signal: a server whose parent was
// killed stays until the next start on the same folder stops it.
func serverAttributes(cred *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: cred}
}

// serves tells whether the process is a postgres on this cluster, by the
// arguments that it was started with.
func serves(pid int, clusterDir string) bool {
	out, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output() //nolint:noctx // it answers at once
	if err != nil {
		return false
	}
	name, rest, _ := strings.Cut(string(out), " -D ")
	return filepath.Base(name) == "postgres" && strings.HasPrefix(rest, clusterDir+" ")
}
