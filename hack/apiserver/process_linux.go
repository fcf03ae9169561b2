package apiserver

import "syscall"

// attributes puts the program into a process group of its own, so that Ctrl-C
// reaches us alone, and has the kernel kill it when we die: its data is worth
// nothing without us.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
