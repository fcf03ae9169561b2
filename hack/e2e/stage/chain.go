package stage

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"

	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// authorityLamports pay for the pool's accounts, whose tree grows with the ring.
	authorityLamports = 100 * solana.LAMPORTS_PER_SOL
	// poolLamports are what withdrawals under simulated proofs draw on.
	poolLamports = 1_000_000 * solana.LAMPORTS_PER_SOL
	// callWithin bounds one call.
	callWithin = 30 * time.Second
)

// Chain is the local chain with its pool.
type Chain struct {
	RPC     *rpc.Client
	Profile *shieldpool.Profile
	Pool    *shieldpool.Pool
	// Market is where swaps trade.
	Market *market.Market

	mu   sync.Mutex
	sent map[solana.PublicKey]uint64
}

// Sent are the lamports that Fund gave to an address.
func (c *Chain) Sent(to solana.PublicKey) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent[to]
}

func newChain(url string, with *http.Client, ring int) (*Chain, error) {
	// Calls have to end, whatever becomes of the connection.
	client := *with
	client.Timeout = callWithin
	c := &Chain{
		RPC:     rpc.NewWithCustomRPCClient(jsonrpc.NewClientWithOpts(url, &jsonrpc.RPCClientOpts{HTTPClient: &client})),
		Profile: shieldpool.Development(), sent: make(map[solana.PublicKey]uint64),
	}
	c.Profile.RootHistory = ring
	var err error
	if c.Pool, err = c.Profile.Pool(c.Profile.Mints[0]); err != nil {
		return nil, fmt.Errorf("find the pool's accounts: %w", err)
	}
	if c.Market, err = market.For(localnet.OutputMint()); err != nil {
		return nil, fmt.Errorf("find the market's accounts: %w", err)
	}
	return c, nil
}

// Fund gives lamports and waits until they are there for good.
func (c *Chain) Fund(ctx context.Context, to solana.PublicKey, lamports uint64) error {
	signature, err := c.RPC.RequestAirdrop(ctx, to, lamports, rpc.CommitmentConfirmed)
	if err != nil {
		return fmt.Errorf("ask for an airdrop: %w", err)
	}
	c.mu.Lock()
	c.sent[to] += lamports
	c.mu.Unlock()
	return c.await(ctx, signature, "an airdrop")
}

// Authority makes the wallet that is to own the pool.
func (c *Chain) Authority(ctx context.Context) (solana.PrivateKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the pool's authority: %w", err)
	}
	authority := solana.PrivateKey(private)
	return authority, c.Fund(ctx, authority.PublicKey(), authorityLamports)
}

// Initialise makes the pool, as its owner does once, and returns when the chain
// has the transaction.
func (c *Chain) Initialise(ctx context.Context, authority solana.PrivateKey) error {
	instruction, err := c.Pool.Initialize(authority.PublicKey())
	if err != nil {
		return fmt.Errorf("initialise the pool: %w", err)
	}
	latest, err := c.RPC.GetLatestBlockhash(ctx, rpc.CommitmentConfirmed)
	if err != nil {
		return fmt.Errorf("initialise the pool: %w", err)
	}
	tx, err := solana.NewTransaction([]solana.Instruction{instruction}, latest.Value.Blockhash, solana.TransactionPayer(authority.PublicKey()))
	if err != nil {
		return fmt.Errorf("initialise the pool: %w", err)
	}
	if _, err := tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &authority }); err != nil {
		return fmt.Errorf("initialise the pool: %w", err)
	}
	if _, err := c.RPC.SendTransactionWithOpts(ctx, tx, rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentConfirmed}); err != nil {
		return fmt.Errorf("initialise the pool: %w", err)
	}
	return nil
}

// FillPool gives the pool lamports for withdrawals under simulated proofs.
func (c *Chain) FillPool(ctx context.Context) error { return c.Fund(ctx, c.Pool.Address, poolLamports) }

// await waits until a transaction is final.
func (c *Chain) await(ctx context.Context, signature solana.Signature, what string) error {
	return cluster.Await(ctx, what+" is final", cluster.Minutes(2), func(ctx context.Context) (string, error) {
		answer, err := c.RPC.GetSignatureStatuses(ctx, true, signature)
		if err != nil {
			return "", err
		}
		switch status := answer.Value[0]; {
		case status == nil:
			return "the chain does not know it", nil
		case status.Err != nil:
			return fmt.Sprintf("it failed: %v", status.Err), nil
		case status.ConfirmationStatus != rpc.ConfirmationStatusFinalized:
			return "it is " + string(status.ConfirmationStatus), nil
		}
		return "", nil
	})
}

// Balance reads an account's lamports; 0 for one that does not exist.
func (c *Chain) Balance(ctx context.Context, key solana.PublicKey, level rpc.CommitmentType) (uint64, error) {
	answer, err := c.RPC.GetBalance(ctx, key, level)
	if err != nil {
		return 0, fmt.Errorf("read a balance: %w", err)
	}
	return answer.Value, nil
}
