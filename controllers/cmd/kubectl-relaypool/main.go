// Command kubectl-relaypool is a plugin of kubectl for people who run RelayPools: it shows what a
// fleet lacks, funds its fee payers, rotates their keys and collects what support needs.
package main

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/relaypool/relaypool/relay/commandline"
)

// cli is every command and its flags.
type cli struct {
	cluster `embed:""`

	Status        statusCmd        `cmd:"" help:"Show the RelayPools of a namespace as a table, or one as a tree: conditions, fee payers, endpoints, backlog, rotation and pods."`
	Fund          fundCmd          `cmd:"" help:"Print how much each underfunded fee payer lacks, and the command that sends it. With --from-key-file, send it."`
	Rotate        rotateCmd        `cmd:"" help:"Start a rotation of the generated fee payer keys, by raising spec.feePayers.rotation.revision by one."`
	Pause         pauseCmd         `cmd:"" help:"Set spec.paused: the operator changes nothing more that belongs to the RelayPool. Its pods keep working."`
	Resume        resumeCmd        `cmd:"" help:"Remove spec.paused."`
	Held          heldCmd          `cmd:"" help:"List why submissions of a fleet are held, how many, and what to do."`
	SupportBundle supportBundleCmd `cmd:"" help:"Write an archive for support: the RelayPool, its objects and events, pods with logs, health and metrics, and the operator's logs. Of Secrets it has names, labels and key names, but no value."`

	commandline.Common `embed:""`
}

// environment is what commands need from the process.
type environment struct {
	context.Context
	in       io.Reader
	out, err io.Writer
	now      func() time.Time
	// pace is the pause between two looks at something that changes.
	pace time.Duration
	// podTimeout bounds one request to a pod.
	podTimeout time.Duration
	// malformed are the parse errors of the command's flags.
	malformed []error
	// cluster are the flags that select the cluster and the namespace.
	cluster *cluster
}

func main() {
	ctx, stop := commandline.SignalContext()
	code := run(&environment{Context: ctx, in: os.Stdin, out: os.Stdout, err: os.Stderr, now: time.Now, pace: 2 * time.Second, podTimeout: 10 * time.Second}, os.Args[1:])
	stop()
	os.Exit(code)
}

// run parses and runs one command line and returns the exit code.
func run(env *environment, args []string) int {
	commands := new(cli)
	return program(env).Run(commands, args, func(malformed []error) any {
		env.malformed, env.cluster = malformed, &commands.cluster
		return env
	})
}

func program(env *environment) *commandline.Program {
	return &commandline.Program{
		Name: "kubectl-relaypool", Out: env.out, Err: env.err,
		Description: "The kubectl plugin of relaypool shows and changes RelayPools. Run it as kubectl relaypool. It does what your own rights in the cluster allow.",
	}
}

// pause waits for the environment's pace. It returns the context's error when ctx ends before.
func (e *environment) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(e.pace):
		return nil
	}
}
