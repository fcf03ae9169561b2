//go:build unix && !linux

package process

import "syscall"

// attributes put a child into a process group of its own, so that Ctrl-C in a terminal
// reaches only this process, which stops the children in their order. This system has no
// parent-death signal: a kill -9 of this process leaves the children.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
