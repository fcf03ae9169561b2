package arena

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// fund gives every fee payer new lamports and remembers it.
func (a *arena) fund() error {
	for _, payer := range a.payers {
		if err := a.network.chain.Fund(payer.PublicKey(), fundingLamports); err != nil {
			return err
		}
		a.funded[payer.PublicKey()] += fundingLamports
	}
	return nil
}

// strayUnits is more compute than any Transact uses.
const strayUnits = 250_000

// stranger is the wallet that sends spends to the chain itself.
func stranger() solana.PrivateKey {
	seed := sha256.Sum256([]byte("a wallet that does not wait for its relay"))
	return solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

// direct sends a spend to the chain from a wallet of its own, as a client may
// that has both: which of the two lands is for the chain to decide. That it
// fails is expected then, and no fault.
func (a *arena) direct(ctx context.Context, q *load.Request) {
	key := stranger()
	latest, err := a.eyes.client.GetLatestBlockhash(ctx, rpc.CommitmentConfirmed)
	if err != nil {
		return
	}
	call := &shieldpool.Call{
		Proof: q.Proofs[0][:], Inputs: &q.Inputs, Notes: q.Notes, Destination: shieldpool.Destination{Recipient: q.Recipient},
	}
	tx, err := a.pool.Transaction(key.PublicKey(), call, shieldpool.Compute{Limit: strayUnits}, latest.Value.Blockhash, nil)
	if err != nil {
		return
	}
	if _, err := tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &key }); err != nil {
		return
	}
	_, _ = a.eyes.client.SendTransactionWithOpts(ctx, tx, rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentConfirmed})
}
