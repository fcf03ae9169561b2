package arena

import (
	"context"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/drill/gather"
	"github.com/relaypool/relaypool/hack/drill/schedule"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/sandbox"
)

const (
	// transactionLamports are about what a transaction costs its payer.
	transactionLamports = 1_800_000
	// minimumLamports is the balance that a payer has to keep: the relay's default.
	minimumLamports = 50_000_000
	// fundingLamports is what a payer gets when payers are funded: enough for thousands of
	// transactions.
	fundingLamports = 100 * solana.LAMPORTS_PER_SOL
	// unreachableShare is the share of swaps whose minimum output the market does not offer.
	unreachableShare = 0.2
	// databaseConnections is the number of connections of each relay.
	databaseConnections = 24
)

func (a *arena) setUp(ctx context.Context) (err error) {
	a.began = time.Now()
	if a.box, err = sandbox.New(a.o.Root, a.o.State, a.o.Progress); err != nil {
		return err
	}
	a.say("building the relay")
	if err := a.box.BuildRelay(ctx); err != nil {
		return err
	}
	if err := a.box.MakeKeys(ctx, a.o.Payers, a.o.Seed); err != nil {
		return err
	}
	if err := a.startChain(ctx); err != nil {
		return err
	}
	a.say("starting Postgres")
	if err := a.box.StartPostgres(ctx); err != nil {
		return err
	}
	a.database = &database{box: a.box, up: true}
	if err := a.box.FreshDatabase(ctx, databaseName, ""); err != nil {
		return err
	}
	a.say("starting %d relays", a.o.Relays)
	if err := a.defineRelays(ctx); err != nil {
		return err
	}
	return a.makeLoad()
}

// startChain makes the chain with its pool, funds all accounts and reads their balances.
func (a *arena) startChain(ctx context.Context) (err error) {
	funds := map[solana.PublicKey]uint64{a.box.Pool.Address: sandbox.PoolLamports, stranger().PublicKey(): 2 * fundingLamports}
	for i, payer := range a.box.Payers {
		funds[payer.PublicKey()] = a.firstFunds(i)
	}
	if err := a.box.StartChain(ctx, localnet.Options{SlotDuration: a.o.Slot, FinalizeAfter: a.o.FinalizeAfter, Seed: a.o.Seed}, sandbox.Addresses{}, funds); err != nil {
		return err
	}
	if a.network, err = newNetwork(a.box.Chain, a.o.Endpoints, a.box.Payers[0].PublicKey(), a.o.Seed); err != nil {
		return err
	}
	a.chainReader = gather.NewChain(rpc.New(a.box.URL), a.box.Pool)
	if a.market, err = market.For(localnet.OutputMint()); err != nil {
		return err
	}
	if a.vaultOpening, err = a.chainReader.Balance(ctx, a.market.VaultSOL); err != nil {
		return err
	}
	for _, payer := range a.box.Payers {
		key := payer.PublicKey()
		a.chainReader.Payers[key] = true
		if a.openingBalances[key], err = a.chainReader.Balance(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// firstFunds returns a payer's lamports at the start. The first payer runs dry shortly
// before the schedule funds it, and the others much earlier.
func (a *arena) firstFunds(i int) uint64 {
	expected := a.o.Rate * a.o.Duration.Seconds() * schedule.FundedFrom
	share := 0.8
	if i > 0 {
		share = 0.15 / float64(i)
	}
	return minimumLamports + uint64(expected*share*(transactionLamports+a.o.Swaps*swapLamports))
}

// defineRelays gives each relay its ports and its arguments, among them the faulty
// endpoints, which have every role.
func (a *arena) defineRelays(ctx context.Context) (err error) {
	var signers []string
	if a.keyService, signers, err = a.box.StartKeyService(ctx); err != nil {
		return err
	}
	for i := range a.o.Relays {
		r, err := a.box.NewRelay(ctx, sandbox.RelayOptions{
			Name: fmt.Sprintf("relay %d", i+1), Endpoints: a.network.endpoints, Router: a.box.Router + []string{"", "/v2"}[i%2], Flags: append([]string{
				fmt.Sprintf("--database-max-connections=%d", databaseConnections), "--rate-limit=0", "--spend-cap-transfers-day=0",
				// Debug logs contain the most, so they would show a leak of request content.
				"--log-format=json", "--log-level=debug",
			}, signers...),
		})
		if err != nil {
			return err
		}
		a.relays = append(a.relays, &relay{Relay: r, index: i, wanted: true, changed: make(chan struct{}, 1), recordExit: a.recordExit})
	}
	return nil
}

func (a *arena) makeLoad() error {
	prover, err := a.box.Simulator()
	if err != nil {
		return err
	}
	a.load, err = load.New(load.Options{
		Relays: a.box.URLs(), Simulator: prover, Mint: a.box.Pool.Mint, Seed: a.o.Seed, HTTP: a.http, Now: time.Now,
		Rate: a.o.Rate, InFlight: a.o.InFlight, Withdrawals: 0.6, Rivals: 0.04, DirectShare: 0.03, Direct: a.direct,
		Swaps: a.o.Swaps, Unreachable: unreachableShare, Market: a.box.Market(),
		PollMin: a.o.PollMin, PollMax: a.o.PollMax, PauseMax: a.o.PauseMax,
	})
	return err
}
