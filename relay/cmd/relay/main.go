// Command relay puts shielded-pool transactions on the chain for clients. It also has
// tools for migrations, for keys, and for the compliance officer.
package main

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/relaypool/relaypool/relay/commandline"
)

// cli holds every command and its flags.
type cli struct {
	Serve      serveCmd      `cmd:"" help:"Serve the interface, and put submissions on the chain."`
	Migrate    migrateCmd    `cmd:"" help:"Bring the database's schema up to date. relay serve does so at start as well."`
	Ledger     ledgerCmd     `cmd:"" help:"Print what the fee payers spent, by day and kind, from the chain's own history; with an RPC endpoint, bring the ledger up to the chain first and compare the balances. Ends with 1 when a lamport is not accounted for."`
	Swaps      swapsCmd      `cmd:"" help:"List the swaps whose second leg is under way: how far each is, when it times out, and what it waits for. With an RPC endpoint, the slot is the chain's; otherwise it is estimated from the newest slot that the relays observed."`
	Attempts   attemptsCmd   `cmd:"" help:"List transactions that were signed long ago, are not on the chain, and may still land as far as the relays know. With --end, end the attempts that can no longer land according to the given RPC endpoints."`
	ProofA     proofACmd     `cmd:"" name:"proof-a" help:"Show which encoding of a proof's A, plain or negated, the pool's program accepts, and the landed transaction that shows it. Proofs in the other encoding are tried on the chain before they are refused."`
	Index      indexCmd      `cmd:"" help:"Show and check the stored leaves of the pool's tree, which GET /commitments serves."`
	Lanes      lanesCmd      `cmd:"" help:"Show how many transactions landed and expired, in how many slots and at what price, by lane and price band."`
	Sweep      sweepCmd      `cmd:"" help:"Move fee payers' own lamports to other keys, when keys are rotated."`
	Probe      probeCmd      `cmd:"" help:"Check the RPC endpoints, the pool on the chain, the program profile and the fee payers, and say what is wrong and what to do. Changes nothing. Ends with 0 when all checks pass, else with 1."`
	Keygen     keygenCmd     `cmd:"" help:"Make a fee payer's key file and print its address."`
	Compliance complianceCmd `cmd:"" help:"Commands for the compliance officer: make keys, export sealed viewing keys and open them."`

	commandline.Common `embed:""`
}

// environment is what commands need from the process.
type environment struct {
	context.Context
	in       io.Reader
	out, err io.Writer
	// pace is the pause between two checks in `relay sweep` and `relay attempts --end`; 0
	// selects each command's default.
	pace time.Duration
	// malformed are the errors of flags that do not parse.
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
		Name: "relay", Out: env.out, Err: env.err,
		Description: "Relaypool's relay takes a client's zero-knowledge proof, pays the network's fee and puts the transaction on the chain, so that the client's own wallet never appears.",
	}
}
