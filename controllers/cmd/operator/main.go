// Command operator reconciles the fleets of relays that RelayPools declare. It
// can also print, without a cluster, the objects of a RelayPool.
package main

import (
	"context"
	"io"
	"os"

	"github.com/relaypool/relaypool/relay/commandline"
)

// cli is every command and its flags.
type cli struct {
	Run   runCmd   `cmd:"" help:"Keep the fleets of the cluster's RelayPools as they are declared."`
	Plan  planCmd  `cmd:"" help:"Print the objects that the operator would make for a RelayPool. It needs no cluster, except with --server. Ends with 1 when the RelayPool would be refused."`
	Check checkCmd `cmd:"" help:"Check an installed operator: the cluster serves RelayPools, they may be listed, and an operator renews its Lease. Ends with 1 if not. It needs the operator's rights."`

	commandline.Common `embed:""`
}

// environment is what commands need from the process.
type environment struct {
	context.Context
	in       io.Reader
	out, err io.Writer
	// malformed are the parse errors of the command's flags.
	malformed []error
}

func main() {
	ctx, stop := commandline.SignalContext()
	code := run(&environment{Context: ctx, in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Args[1:])
	stop()
	os.Exit(code)
}

// run parses and runs one command line and returns the exit code.
func run(env *environment, args []string) int {
	return program(env).Run(new(cli), args, func(malformed []error) any {
		env.malformed = malformed
		return env
	})
}

func program(env *environment) *commandline.Program {
	return &commandline.Program{
		Name: "operator", Out: env.out, Err: env.err,
		Description: "Relaypool's operator keeps fleets of relays for shielded pools on Solana as RelayPools declare them: their pods, fee-payer keys, checks of the chain and scaling.",
	}
}
