// Command relay puts shielded-pool transactions on the chain for clients, and
// holds the tools around it: migrations, keys, and the compliance officer's half.
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
	"time"

	"github.com/alecthomas/kong"

	"github.com/relaypool/relaypool/relay/internal/config"
)

// Exit codes: a command that is used wrongly is told from one that failed.
const (
	exitFailed = 1
	exitUsage  = 2
)

// cli is every command and its flags.
type cli struct {
	Serve      serveCmd      `cmd:"" help:"Serve the interface, and carry submissions to the chain."`
	Migrate    migrateCmd    `cmd:"" help:"Bring the database's schema up to date. relay serve does so at start as well."`
	Ledger     ledgerCmd     `cmd:"" help:"Print what the fee payers spent, by day and kind, from the chain's own history; with an RPC endpoint, bring the ledger up to the chain first and compare the balances. Ends with 1 when a lamport is not accounted for."`
	Swaps      swapsCmd      `cmd:"" help:"List the swaps whose second leg is under way: how far each is, when it times out, and what it waits for. With an RPC endpoint the chain's slot is asked for, else it is reckoned from the newest that the fleet has seen."`
	Sweep      sweepCmd      `cmd:"" help:"Move fee payers' own lamports to other keys, when keys are rotated."`
	Probe      probeCmd      `cmd:"" help:"Check the RPC endpoints, the pool on the chain, the program profile and the fee payers, and say what to do about what is not as it has to be. Changes nothing. Ends with 0 when all is well, else with 1."`
	Keygen     keygenCmd     `cmd:"" help:"Make a fee payer's key file and print its address."`
	Compliance complianceCmd `cmd:"" help:"The compliance officer's half: keys, and what was sealed to them."`
	Version    versionCmd    `cmd:"" help:"Print version and build."`
}

// environment is what commands need of the process.
type environment struct {
	context.Context
	in       io.Reader
	out, err io.Writer
	// pace is the pause between relay sweep's looks at chain and database; 0 for its own.
	pace time.Duration
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
	malformed := config.NewMalformed()
	parser, err := newParser(env, malformed, func(int) { exited = true })
	if err != nil {
		fmt.Fprintln(env.err, "relay:", err)
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
	var problems config.Problems
	var own *coded
	switch {
	case err == nil:
		return 0
	case errors.As(err, &own):
		fmt.Fprintln(env.err, "relay:", err)
		return own.code
	case errors.As(err, &problems), errors.Is(err, errUsage):
		fmt.Fprintln(env.err, "relay:", err)
		return exitUsage
	default:
		fmt.Fprintln(env.err, "relay:", err)
		return exitFailed
	}
}

// usage gives kong's error, but for an argument that no command takes: kong
// repeats it, and it may be a secret that a flag's file should hold.
func usage(err error) error {
	if strings.HasPrefix(err.Error(), "unexpected argument") {
		err = errors.New("expected a command and its flags, received an argument that is neither")
	}
	return fmt.Errorf("%w: %w; relay --help explains every command and flag", errUsage, err)
}

func newParser(env *environment, malformed *config.Malformed, exit func(int)) (*kong.Kong, error) {
	options := append(malformed.Options(),
		kong.Name("relay"),
		kong.Description("Relaypool's relay takes a client's zero-knowledge proof, pays the network's fee and puts the transaction on the chain, so that the client's own wallet never appears."),
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

// describe is a flag's or an argument's help, with its default and its variable.
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
