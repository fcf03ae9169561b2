package arena

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// fund airdrops lamports to every fee payer. It repeats airdrops that a fork undoes, and
// returns when all are finalized.
func (a *arena) fund(ctx context.Context) error {
	var funding sync.WaitGroup
	errs := make([]error, len(a.box.Payers))
	for i, payer := range a.box.Payers {
		funding.Go(func() { errs[i] = a.fundOne(ctx, payer.PublicKey()) })
	}
	funding.Wait()
	return errors.Join(errs...)
}

func (a *arena) fundOne(ctx context.Context, payer solana.PublicKey) error {
	for ctx.Err() == nil {
		signature, err := a.chainReader.Client.RequestAirdrop(ctx, payer, fundingLamports, rpc.CommitmentConfirmed)
		if err != nil {
			return fmt.Errorf("fund a payer: %w", err)
		}
		a.mu.Lock()
		a.airdrops[payer] = append(a.airdrops[payer], signature)
		a.mu.Unlock()
		if final, err := a.awaitAirdrop(ctx, signature); final || err != nil {
			return err
		}
	}
	return nil
}

// awaitAirdrop reports whether an airdrop became final and was not undone.
func (a *arena) awaitAirdrop(ctx context.Context, signature solana.Signature) (final bool, err error) {
	for ctx.Err() == nil {
		answer, err := a.chainReader.Client.GetSignatureStatuses(ctx, true, signature)
		if err != nil {
			return false, fmt.Errorf("check an airdrop: %w", err)
		}
		status := answer.Value[0]
		switch {
		case status == nil:
			return false, nil
		case status.ConfirmationStatus == rpc.ConfirmationStatusFinalized:
			return true, nil
		}
		load.Sleep(ctx, a.o.Slot)
	}
	return false, nil
}

// funded sums a payer's finalized airdrops. An airdrop that a fork undid may land again
// after its replacement, and counts then too.
func (a *arena) funded(ctx context.Context, payer solana.PublicKey) (lamports uint64, err error) {
	for _, signature := range a.airdrops[payer] {
		final, err := a.awaitAirdrop(ctx, signature)
		if err != nil {
			return 0, err
		}
		if final {
			lamports += fundingLamports
		}
	}
	return lamports, nil
}

// directUnits is more compute than any Transact uses.
const directUnits = 250_000

// stranger is the wallet that sends spends to the chain itself.
func stranger() solana.PrivateKey {
	seed := sha256.Sum256([]byte("a wallet that does not wait for its relay"))
	return solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

// direct sends a spend to the chain from the stranger's wallet. A client may do so in
// addition to its request to the relay: the chain decides which of the two transactions
// lands. An error is therefore expected and ignored.
func (a *arena) direct(ctx context.Context, q *load.Request) {
	key := stranger()
	spend, err := a.box.Pool.Instruction(key.PublicKey(), &shieldpool.Call{
		Proof: q.Proofs[0][:], Inputs: &q.Inputs, Notes: q.Notes, Destination: shieldpool.Destination{Recipient: q.Recipient},
	})
	if err == nil {
		_ = a.box.Send(ctx, directUnits, false, []solana.PrivateKey{key}, spend)
	}
}
