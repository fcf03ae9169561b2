// Command operator keeps fleets of relays as RelayPools declare them. It also
// shows, without a cluster, what it would make of one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/relaypool/relaypool/controllers/internal/settings"
)

// Exit codes: a command that is used wrongly is told from one that failed.
const (
	exitFailed = 1
	exitUsage  = 2
)

// cli is every command and its flags.
type cli struct {
	Run     runCmd     `cmd:"" help:"Keep the fleets of the cluster's RelayPools as they are declared."`
	Plan    planCmd    `cmd:"" help:"Print the objects that a RelayPool would be made into. It needs no cluster, unless --server asks one. Ends with 1 when the RelayPool would be refused."`
	Version versionCmd `cmd:"" help:"Print version and build."`
}

// environment is what commands need of the process.
type environment struct {
	context.Context
	in       io.Reader
	out, err io.Writer
	// malformed are the values of the command's flags that do not parse.
	malformed []error
}

// errUsage marks what whoever ran the command has to change, flags or files.
var errUsage = errors.New("wrong use")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(&environment{Context: ctx, in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Args[1:])
	stop()
	os.Exit(code)
}

// run parses and runs one command line and gives the exit code.
func run(env *environment, args []string) int {
	exited := false
	malformed := settings.NewMalformed()
	parser, err := newParser(env, malformed, func(int) { exited = true })
	if err != nil {
		fmt.Fprintln(env.err, "operator:", err)
		return exitFailed
	}
	command, err := parser.Parse(args)
	switch {
	case exited: // --help has been printed
		return 0
	case err != nil:
		err = usage(err)
	default:
		env.malformed = malformed.Of(command.Flags())
		err = command.Run(env)
	}
	var problems settings.Problems
	switch {
	case err == nil:
		return 0
	case errors.As(err, &problems), errors.Is(err, errUsage):
		fmt.Fprintln(env.err, "operator:", err)
		return exitUsage
	default:
		fmt.Fprintln(env.err, "operator:", err)
		return exitFailed
	}
}

// usage gives kong's error, but for an argument that no command takes: kong
// repeats it, and it may be what should not be seen.
func usage(err error) error {
	if strings.HasPrefix(err.Error(), "unexpected argument") {
		err = errors.New("expected a command and its flags, received an argument that is neither")
	}
	return fmt.Errorf("%w: %w; operator --help explains every command and flag", errUsage, err)
}

func newParser(env *environment, malformed *settings.Malformed, exit func(int)) (*kong.Kong, error) {
	options := append(malformed.Options(),
		kong.Name("operator"),
		kong.Description("Relaypool's operator keeps fleets of relays for shielded pools on Solana as RelayPools declare them: their pods, fee-payer keys, checks of the chain and scaling."),
		kong.Writers(env.out, env.err), kong.Exit(exit), kong.Bind(env),
		kong.Help(help), kong.ValueFormatter(describe), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}))
	return kong.New(new(cli), options...)
}

// help prints a command's help, and without a command that of all of them.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || ctx.Selected() != nil {
		return err
	}
	for _, leaf := range ctx.Model.Leaves(true) {
		sub, err := kong.Trace(ctx.Kong, strings.Fields(leaf.FullPath())[1:])
		if err != nil {
			return err
		}
		fmt.Fprintf(ctx.Stdout, "\n\n")
		if err := kong.DefaultHelpPrinter(options, sub); err != nil {
			return err
		}
	}
	return nil
}

// describe is a flag's help, with its default and its variable.
func describe(v *kong.Value) string {
	text := v.Help
	if v.HasDefault {
		text += " Default: " + v.Default + "."
	}
	for _, name := range v.Tag.Envs {
		text += " [$" + name + "]"
	}
	return text
}
