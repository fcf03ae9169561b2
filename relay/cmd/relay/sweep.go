package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/app"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/sweep"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
)

// flushTimeout bounds the wait for sends under way. It is longer than a send's own timeout.
const flushTimeout = 6 * time.Second

// sweepCmd moves a fee payer's own lamports when keys are rotated.
type sweepCmd struct {
	Fund  sweepFundCmd  `cmd:"" help:"Send lamports from old fee payers to new ones, until each new one holds the target or, if that is too much, until all that the old ones hold above --keep is shared equally. Relays may use them meanwhile. Ends with 0 when all is finalized, 3 when it is not done yet, 4 when lamports are missing; run again, it moves nothing twice."`
	Drain sweepDrainCmd `cmd:"" help:"Wait until no transaction that old fee payers signed can still land, according to the database, which serving relays keep current. Ends with 0 when that is so, 3 when it is not yet."`
	All   sweepAllCmd   `cmd:"" help:"Drain, then send everything that old fee payers hold to one address, down to 0 lamports, and complete their ledger. No relay may use them any more. Ends with 0 when all is finalized, 3 when it is not done yet, 4 when lamports are missing; run again, it moves nothing twice."`
}

type sweepFundCmd struct {
	config.Sweep
	config.SignersFile
	From   []string `required:"" placeholder:"FILE|SIGNER" help:"Required. Key file of an old fee payer, a directory of such, or the name of a signer in --fee-payer-signers-file. May be repeated, or name several with commas between them."`
	To     []string `required:"" placeholder:"FILE|ADDRESS" help:"Required. Address of a new fee payer, its key file, or a directory of such. May be repeated, or name several with commas between them."`
	Target uint64   `required:"" placeholder:"LAMPORTS" help:"Required. Lamports that each new fee payer is to hold."`
	Keep   uint64   `default:"50000000" env:"RELAYPOOL_FEE_PAYER_MIN_BALANCE" placeholder:"LAMPORTS" group:"Fees" help:"Lamports that each old fee payer keeps at least: below the relay's minimum it would not be used. Nothing is sent when the new ones would hold less than that each."`
}

// Run funds the new payers.
func (c *sweepFundCmd) Run(env *environment) error {
	from, fromErr := payersOf(env, &c.Sweep, c.SignersFile, c.From)
	to, toErr := addressesOf("to", c.To)
	problems := []error{fromErr, toErr, config.CheckBalance("target", c.Target), checkDisjoint(from, to)}
	return runSweep(env, &c.Sweep, "fund", problems, func(ctx context.Context, s *sweep.Sweeper) (sweep.Result, error) {
		return s.Fund(ctx, sweep.FundOrder{From: from, To: to, Target: c.Target, Keep: c.Keep})
	})
}

type sweepDrainCmd struct {
	config.Sweep
	From []string `required:"" placeholder:"FILE|ADDRESS" help:"Required. Address of an old fee payer, its key file, or a directory of such. May be repeated, or name several with commas between them."`
}

// Run waits until no transaction of the old payers can land any more.
func (c *sweepDrainCmd) Run(env *environment) error {
	from, err := addressesOf("from", c.From)
	return runSweep(env, &c.Sweep, "drain", []error{err}, func(ctx context.Context, s *sweep.Sweeper) (sweep.Result, error) {
		return s.Drain(ctx, from)
	})
}

type sweepAllCmd struct {
	config.Sweep
	config.SignersFile
	From []string `required:"" placeholder:"FILE|SIGNER" help:"Required. Key file of an old fee payer, a directory of such, or the name of a signer in --fee-payer-signers-file. May be repeated, or name several with commas between them."`
	To   string   `required:"" placeholder:"FILE|ADDRESS" help:"Required. Where the lamports go: an address, or a key file."`
}

// Run moves all lamports off the old payers.
func (c *sweepAllCmd) Run(env *environment) error {
	from, fromErr := payersOf(env, &c.Sweep, c.SignersFile, c.From)
	to, toErr := addressesOf("to", []string{c.To})
	if toErr == nil && len(to) != 1 {
		toErr = fmt.Errorf("--to: expected one address or key file, received a directory of %d", len(to))
	}
	return runSweep(env, &c.Sweep, "all", []error{fromErr, toErr, checkDisjoint(from, to)}, func(ctx context.Context, s *sweep.Sweeper) (sweep.Result, error) {
		return s.All(ctx, from, to[0])
	})
}

// runSweep runs a step and writes the termination message.
func runSweep(env *environment, c *config.Sweep, step string, problems []error, do func(context.Context, *sweep.Sweeper) (sweep.Result, error)) error {
	result, err := sweepNow(env, c, problems, do)
	err = withCode(err)
	line := fmt.Sprintf("%s is done: %s", step, result)
	if step == "drain" {
		line = "drain is done: nothing that these keys signed can land any more"
	}
	if err != nil {
		line = fmt.Sprintf("%s is not done: %s", step, err)
		if result.Transactions > 0 {
			line += "; it " + result.String()
		}
	} else {
		fmt.Fprintln(env.out, line)
	}
	return errors.Join(err, writeTerminationMessage(c.TerminationLog, line))
}

func sweepNow(env *environment, c *config.Sweep, problems []error, do func(context.Context, *sweep.Sweeper) (sweep.Result, error)) (result sweep.Result, err error) {
	c.EarlierProblems = env.malformed
	m, err := c.Load(problems...)
	if err != nil {
		return result, err
	}
	log, err := telemetry.NewLog(env.err, c.Level, c.Format)
	if err != nil {
		return result, fmt.Errorf("%w: %w", commandline.ErrUsage, err)
	}
	endpoints, err := app.Endpoints(m.Endpoints, chain.EndpointsOptions{Genesis: m.Genesis, Log: log})
	if err != nil {
		return result, err
	}
	defer endpoints.Close()
	defer flush(env, endpoints, log)
	ctx, cancel := context.WithTimeout(env, c.Timeout)
	defer cancel()
	if err := checkChain(ctx, endpoints, log); err != nil {
		return result, err
	}
	err = withDatabase(env, m.DatabaseURL, c.MaxConnections, func(pool *pgxpool.Pool) error {
		s, err := store.New(pool)
		if err != nil {
			return err
		}
		sweeper, err := sweep.New(sweep.Options{
			Chain: endpoints, Store: s.Sweeps(), Accounting: &sweepAccounting{ledger: s.Ledger(), endpoints: endpoints, log: log}, Log: log, Now: time.Now,
			Poll: env.pace, Rebroadcast: 2 * env.pace,
			Price: txmgr.PriceRule{Floor: c.PriorityFeeFloor, Cap: c.PriorityFeeCap, Percentile: c.PriorityFeePercentile},
		})
		if err != nil {
			return err
		}
		result, err = do(ctx, sweeper)
		return err
	})
	return result, err
}

// flush waits for sends under way, because a send that is cut off may or may not have put its
// transaction on the chain.
func flush(env *environment, endpoints *chain.Endpoints, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(env), flushTimeout)
	defer cancel()
	if err := endpoints.Flush(ctx); err != nil {
		log.WarnContext(ctx, "sends still under way at the end", "error", err)
	}
}

// checkChain checks, before anything is signed, that an endpoint serves the configured chain.
// Endpoints of other chains are never used.
func checkChain(ctx context.Context, endpoints *chain.Endpoints, log *slog.Logger) error {
	for warned := false; ; warned = true {
		_, err := endpoints.GenesisHash(ctx)
		var foreign *chain.GenesisError
		if errors.As(err, &foreign) && !slices.ContainsFunc(endpoints.Status(), func(e chain.EndpointStatus) bool { return !e.Foreign }) {
			return fmt.Errorf("%w: the RPC endpoints serve another chain: %w, or --genesis-hash", commandline.ErrUsage, err)
		}
		// If the hash is configured, GenesisHash returns it even if no endpoint answers. This call
		// makes sure that an endpoint answers.
		if _, err = endpoints.Slot(ctx, onchain.Confirmed); err == nil {
			return nil
		}
		if !warned && ctx.Err() == nil {
			log.WarnContext(ctx, "chain unreachable; retrying until it answers", "error", err)
		}
		if !pause(ctx, time.Second) {
			return &sweep.Unfinished{WaitingFor: fmt.Sprintf("the answer of an RPC endpoint (%v)", err), Err: ctx.Err()}
		}
	}
}

// checkDisjoint refuses an address that is in both from and to.
func checkDisjoint(from []txmgr.Payer, to []solana.PublicKey) error {
	for _, k := range from {
		if slices.Contains(to, k.PublicKey()) {
			return fmt.Errorf("--to: %s is among --from too: expected other keys", k.PublicKey())
		}
	}
	return nil
}
