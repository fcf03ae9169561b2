package process

import "syscall"

// attributes give a child its own process group, so that Ctrl-C in a terminal reaches only
// this process, which stops its children in the right order. They also make the kernel kill
// the child when this process ends, even by kill -9.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
