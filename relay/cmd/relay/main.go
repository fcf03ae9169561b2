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
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes: a configuration that is wrong is told from a relay that failed.
const (
	exitFailed        = 1
	exitConfiguration = 2
)

// cli is every command and its flags.
type cli struct {
	Serve      serveCmd      `cmd:"" help:"Serve the interface, and carry submissions to the chain."`
	Migrate    migrateCmd    `cmd:"" help:"Bring the database's schema up to date. relay serve does so at start as well."`
	Keygen     keygenCmd     `cmd:"" help:"Make a fee payer's key file and print its address."`
	Compliance complianceCmd `cmd:"" help:"The compliance officer's half: keys, and what was sealed to them."`
	Version    versionCmd    `cmd:"" help:"Print version and build."`
}

// environment is what commands need of the process.
type environment struct {
	context.Context
	in       io.Reader
	out, err io.Writer
}

// errConfiguration marks what is wrong with flags, environment or the files they name.
var errConfiguration = errors.New("the configuration is not valid")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(&environment{ctx, os.Stdin, os.Stdout, os.Stderr}, os.Args[1:])
	stop()
	os.Exit(code)
}

// run parses and runs one command line and gives the exit code.
func run(env *environment, args []string) int {
	exited := -1
	parser, err := newParser(env, func(code int) { exited = code })
	if err != nil {
		fmt.Fprintln(env.err, "relay:", err) //nolint:errcheck // there is nowhere else to say it
		return exitFailed
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // --help has been printed
		return exited
	}
	if err == nil {
		err = command.Run(env)
	} else {
		err = fmt.Errorf("%w: %w; relay --help lists commands and flags", errConfiguration, err)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errConfiguration):
		fmt.Fprintln(env.err, "relay:", err) //nolint:errcheck // there is nowhere else to say it
		return exitConfiguration
	default:
		fmt.Fprintln(env.err, "relay:", err) //nolint:errcheck // there is nowhere else to say it
		return exitFailed
	}
}

func newParser(env *environment, exit func(int)) (*kong.Kong, error) {
	return kong.New(new(cli), kong.Name("relay"),
		kong.Description("Relaypool's relay takes a client's zero-knowledge proof, pays the network's fee and puts the transaction on the chain, so that the client's own wallet never appears."),
		kong.Writers(env.out, env.err), kong.Exit(exit), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Bind(env))
}
