// Command with-postgres runs a command, such as tests, with a private PostgreSQL server.
// It starts a server, sets RELAYPOOL_TEST_DATABASE_URL, runs the command, stops the
// server and exits with the command's code. If the variable is already set, it starts no
// server.
//
//	with-postgres go test ./...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/relaypool/relaypool/hack/postgres"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: with-postgres command [argument ...]: the command is missing")
		os.Exit(2)
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "with-postgres: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run returns the command's exit code. As in a shell, the code is 128 plus the signal's number
// if a signal ended the command.
func run(command []string) (code int, err error) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)

	env := os.Environ()
	if os.Getenv(postgres.TestURLVariable) == "" {
		server, remove, failed := postgres.StartTemp(context.Background(), os.Stderr)
		if failed != nil {
			return 1, failed
		}
		defer func() { err = errors.Join(err, remove(context.Background())) }()
		env = append(env, postgres.TestURLVariable+"="+server.URL("postgres"))
	}

	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the user gives the command; signals end it
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// The command has its own process group, to which this process forwards signals. A signal
	// to this process alone thus reaches the command's children, and Ctrl-C reaches each
	// process once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("run %s: %w", command[0], err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			// Kill fails only after the whole group has ended, which done reports.
			_ = syscall.Kill(-cmd.Process.Pid, sig.(syscall.Signal))
		case err := <-done:
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				return cmd.ProcessState.ExitCode(), err
			}
			if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
				return 128 + int(status.Signal()), nil
			}
			return exit.ExitCode(), nil
		}
	}
}
