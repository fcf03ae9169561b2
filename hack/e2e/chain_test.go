package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// authorityLamports pay for the pool's accounts; the tree's size depends on the root history.
	authorityLamports = 100 * solana.LAMPORTS_PER_SOL
	// poolLamports pay for the withdrawals with simulated proofs.
	poolLamports = 1_000_000 * solana.LAMPORTS_PER_SOL
)

// chain is the local chain with its pool.
type chain struct {
	RPC     *rpc.Client
	Profile *shieldpool.Profile
	Pool    *shieldpool.Pool
	// Market is where swaps trade.
	Market *market.Market
	// sent is the sum of airdropped lamports by account.
	sent map[solana.PublicKey]uint64
}

func newChain(t *testing.T, url string, httpClient *http.Client) *chain {
	// The timeout ends calls, regardless of the connection.
	bounded := *httpClient
	bounded.Timeout = 30 * time.Second
	c := &chain{
		RPC:     rpc.NewWithCustomRPCClient(jsonrpc.NewClientWithOpts(url, &jsonrpc.RPCClientOpts{HTTPClient: &bounded})),
		Profile: shieldpool.Development(), sent: make(map[solana.PublicKey]uint64),
	}
	c.Profile.RootHistory = rootHistory
	var err error
	c.Pool, err = c.Profile.Pool(c.Profile.Mints[0])
	ok(t, err)
	c.Market, err = market.For(localnet.OutputMint())
	ok(t, err)
	return c
}

// airdrop sends lamports and waits until they are finalized.
func (s *suite) airdrop(t *testing.T, to solana.PublicKey, lamports uint64) {
	t.Helper()
	signature, err := s.stage.RPC.RequestAirdrop(s.ctx, to, lamports, rpc.CommitmentConfirmed)
	ok(t, err)
	s.stage.sent[to] += lamports
	s.await(t, "an airdrop is finalized", 2*time.Minute, func(ctx context.Context) error {
		answer, err := s.stage.RPC.GetSignatureStatuses(ctx, true, signature)
		if err != nil {
			return err
		}
		switch status := answer.Value[0]; {
		case status == nil:
			return errors.New("the chain does not know the airdrop")
		case status.Err != nil || status.ConfirmationStatus != rpc.ConfirmationStatusFinalized:
			return fmt.Errorf("the airdrop is %s, with error %v", status.ConfirmationStatus, status.Err)
		}
		return nil
	})
}

// initialise makes the pool, as its owner does once, and returns when the chain has
// the transaction.
func (s *suite) initialise(t *testing.T, authority solana.PrivateKey) {
	t.Helper()
	instruction, err := s.stage.Pool.Initialize(authority.PublicKey())
	ok(t, err)
	latest, err := s.stage.RPC.GetLatestBlockhash(s.ctx, rpc.CommitmentConfirmed)
	ok(t, err)
	tx, err := solana.NewTransaction([]solana.Instruction{instruction}, latest.Value.Blockhash, solana.TransactionPayer(authority.PublicKey()))
	ok(t, err)
	_, err = tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &authority })
	ok(t, err)
	_, err = s.stage.RPC.SendTransactionWithOpts(s.ctx, tx, rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentConfirmed})
	ok(t, err)
}

// balance reads an account's lamports; an account that does not exist has 0.
func (c *chain) balance(ctx context.Context, key solana.PublicKey, level rpc.CommitmentType) (uint64, error) {
	answer, err := c.RPC.GetBalance(ctx, key, level)
	if err != nil {
		return 0, err
	}
	return answer.Value, nil
}
