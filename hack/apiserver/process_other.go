//go:build unix && !linux

package apiserver

import "syscall"

// attributes puts the program into a process group of its own, so that Ctrl-C
// reaches us alone. This system has no parent-death signal: when a test is
// killed, its servers stay until somebody ends them.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
