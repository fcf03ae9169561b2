package process

import "syscall"

// attributes put a child into a process group of its own, so that Ctrl-C in a
// terminal reaches us alone and we stop the children in their order, and let
// the kernel kill it when we die: nothing is left behind, not even by kill -9.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
