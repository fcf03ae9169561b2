package postgres

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// parentDeathSignal says that the server ends with us however we end.
const parentDeathSignal = true

// serverAttributes puts the server into a process group of its own, so that
// Ctrl-C in a terminal reaches us alone and we stop it when its clients are
// done, and lets the kernel shut it down fast when we die.
func serverAttributes(cred *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT, Credential: cred}
}

// serves tells whether the process is a postgres on this cluster, whose first
// process always works in the cluster's folder. A process that has ended, or
// that we may not look at, is not: ours runs as a user that we may.
func serves(pid int, clusterDir string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	exe, err := os.Readlink(filepath.Join(proc, "exe"))
	if err != nil || strings.TrimSuffix(filepath.Base(exe), " (deleted)") != "postgres" { // deleted: the package was upgraded
		return false
	}
	cwd, err := os.Stat(filepath.Join(proc, "cwd"))
	if err != nil {
		return false
	}
	cluster, err := os.Stat(clusterDir)
	return err == nil && os.SameFile(cwd, cluster)
}
