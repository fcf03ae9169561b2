// Package tour shows the life of a shielded note step by step, on the local chain. Its
// client has a wallet and a prover, uses the relay's documented interface, and checks
// every value that it prints.
package tour

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// The amounts of the tour, in lamports.
const (
	funding        = 5_000_000_000
	depositAmount  = 4_000_000_000
	payout         = 1_000_000_000
	laterPayout    = 500_000_000
	fundedLamports = 1_000_000_000
	swapped        = 500_000_000
	// returned is the amount of the refunded swap. reserved is that of the user's swap.
	returned = 250_000_000
	reserved = 250_000_000
)

// Options are the parameters of a tour. All are required but Profile and Requests.
type Options struct {
	// RelayURL, OperationsURL, ChainURL, RouterURL and AdminURL have no slash at the end.
	// AdminURL is the admin port of the chain.
	RelayURL, OperationsURL, ChainURL, RouterURL, AdminURL string
	// OutputMint is the mint that the swaps buy.
	OutputMint solana.PublicKey
	// HTTP reaches every URL above.
	HTTP *http.Client
	// Profile of the pool program; nil is the development profile.
	Profile *shieldpool.Profile
	// FeePayer of the relay.
	FeePayer solana.PublicKey
	Prover   *wallet.Prover
	Print    *terminal.Printer
	// Requests is a folder for requests that the user may send afterwards. If it is
	// empty, no requests are written.
	Requests string
	// Random is the source of keys, secrets and blindings.
	Random io.Reader
	Now    func() time.Time
}

type tour struct {
	Options
	chain chain
	relay *openapi.ClientWithResponses
	pool  *shieldpool.Pool
	mint  fr.Element
	rent  rents

	// wallet is the depositor, who appears in no later transaction.
	wallet          solana.PrivateKey
	registration    openapi.RegisterRequest
	openingBalances balances
	// leaves are the pool's commitments, as the relay lists them.
	leaves []fr.Element
	// note is the wallet's current note. spent is its note before the first withdrawal,
	// and paid is that withdrawal. transferred is the note that it transferred. later is
	// the note that the user may swap.
	note, spent, transferred, later wallet.Note
	paid                            *submission
	signature                       string
	// tokens is the amount bought. paidByRelay is the relay's cost in lamports.
	tokens, paidByRelay uint64
}

// Run makes the tour. Its error names the step, and for a wrong value the expected and
// the received value.
func Run(ctx context.Context, o Options) error {
	t, err := newTour(o)
	if err != nil {
		return fmt.Errorf("start tour: %w", err)
	}
	steps := []step{
		{"The pool is initialised", t.visitPool},
		{"A wallet is funded", t.fundWallet},
		{"It deposits: a proof, signed by the wallet and sent to the chain by itself", t.deposit},
		{"It registers a viewing key: POST /viewing-key/register", t.register},
		{"It rebuilds the tree: GET /commitments against GET /merkle-root", t.rebuild},
		{"It withdraws: POST /transact", t.withdraw},
		{"The same request again changes nothing", t.repeat},
		{"The same note again is refused", t.spendTwice},
		{"A stale root is refused", t.staleRoot},
		{"A forged proof is refused before any RPC call", t.forge},
		{"It withdraws without waiting: POST /withdraw, GET /status/:id", t.withdrawLater},
		{"It transfers inside the pool, with an encrypted note", t.transfer},
		{"It swaps: POST /transact_swap, from the proof to the tokens", t.swap},
		{"A swap that finds no price is refunded", t.refund},
		{"The books balance", t.checkTotals},
	}
	if o.Requests != "" {
		steps = append(steps, step{"Requests are left for you to send", t.leaveRequests})
	}
	for i, step := range steps {
		t.Print.Step(i+1, step.title)
		if err := try(func() { step.run(ctx) }); err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, step.title, err)
		}
	}
	return nil
}

type step struct {
	title string
	run   func(context.Context)
}

func newTour(o Options) (*tour, error) {
	if o.RelayURL == "" || o.OperationsURL == "" || o.ChainURL == "" || o.RouterURL == "" || o.AdminURL == "" || o.OutputMint.IsZero() || o.HTTP == nil || o.FeePayer.IsZero() || o.Prover == nil || o.Print == nil || o.Random == nil || o.Now == nil {
		return nil, errors.New("every option is required")
	}
	profile := o.Profile
	if profile == nil {
		profile = shieldpool.Development()
	}
	t := &tour{Options: o, chain: chain{rpc.NewWithCustomRPCClient(jsonrpc.NewClientWithOpts(o.ChainURL, &jsonrpc.RPCClientOpts{HTTPClient: o.HTTP}))}}
	return t, try(func() {
		t.pool = must(profile.Pool(profile.Mints[0]))
		t.mint = must(merkle.FromBytes(t.pool.Mint.Field))
		t.relay = must(openapi.NewClientWithResponses(o.RelayURL, openapi.WithHTTPClient(o.HTTP)))
	})
}
