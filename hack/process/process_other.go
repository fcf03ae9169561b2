//go:build unix && !linux

package process

import "syscall"

// attributes give a child its own process group, so that Ctrl-C in a terminal reaches only
// this process, which stops its children in the right order. This system has no parent-death
// signal: after a kill -9 of this process its children still run.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
