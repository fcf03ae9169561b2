package process

import "syscall"

// attributes put a child into a process group of its own, so that Ctrl-C in a terminal
// reaches only this process, which stops the children in their order. They also make the
// kernel kill the child when this process ends, even by kill -9.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
