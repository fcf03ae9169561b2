package tour

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// kept is the rent that the relay does not get back, the nullifiers' apart, in
// lamports, and where it stays.
type kept struct {
	lamports uint64
	in       string
}

// costs adds up what the relay paid for a swap and got back, transaction by
// transaction as the chain has them, and checks pool, treasury and payer to the
// lamport.
func (t *tour) costs(ctx context.Context, o *order, before books, kept kept) error {
	after, err := t.readBooks(ctx, solana.PublicKey{})
	if err != nil {
		return err
	}
	receipts, err := t.chain.receiptsOf(ctx, o.accounts.State)
	if err != nil {
		return err
	}
	var sum int64
	var fees uint64
	for _, r := range receipts {
		if err := equal("payer of the swap's transactions", t.FeePayer, r.tx.Message.AccountKeys[0]); err != nil {
			return err
		}
		sum += r.payer
		fees += r.fee
		t.Print.Fact("the relay", "%s by %s, network fee %s", signed(r.payer), r.purpose(t.pool.Profile), terminal.Grouped(r.fee))
	}
	paid := before.payer - after.payer
	t.Print.Fact("the relay paid", "%s: rent of nullifiers %s, rent that stays in %s %s, network fees %s",
		terminal.Lamports(paid), terminal.Grouped(nullifierRent), kept.in, terminal.Grouped(kept.lamports), terminal.Grouped(fees))
	t.Print.Fact("treasury", "%s → %s", terminal.Grouped(before.treasury), terminal.Lamports(after.treasury))
	t.paidByRelay += paid
	return errors.Join(
		equal("pool's lamports", before.pool-o.gross, after.pool),
		equal("treasury's lamports", before.treasury+o.gross-o.net, after.treasury),
		equal("fee payer's lamports", before.payer-nullifierRent-kept.lamports-fees, after.payer),
		equal("what the swap's transactions took from the fee payer", int64(paid), -sum)) //nolint:gosec // far below
}

// signed writes a change of lamports.
func signed(lamports int64) string {
	if lamports < 0 {
		return "− " + terminal.Lamports(uint64(-lamports))
	}
	return "+ " + terminal.Lamports(uint64(lamports))
}

// receiptsOf reads every transaction that names the account, the oldest first.
func (c chain) receiptsOf(ctx context.Context, account solana.PublicKey) ([]*receipt, error) {
	found, err := c.GetSignaturesForAddressWithOpts(ctx, account, &rpc.GetSignaturesForAddressOpts{Commitment: rpc.CommitmentConfirmed})
	if err != nil {
		return nil, fmt.Errorf("list an account's transactions: %w", err)
	}
	receipts := make([]*receipt, 0, len(found))
	for _, transaction := range slices.Backward(found) {
		r, err := c.receipt(ctx, transaction.Signature)
		if err != nil {
			return nil, err
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}

// purpose says what a swap's transaction does.
func (r *receipt) purpose(profile *shieldpool.Profile) string {
	for _, ix := range slices.Backward(r.tx.Message.Instructions) {
		program, err := r.tx.Message.Program(ix.ProgramIDIndex)
		switch {
		case err != nil || len(ix.Data) == 0:
		case program.Equals(solana.SPLAssociatedTokenAccountProgramID):
			return "the three token accounts"
		case !program.Equals(profile.ProgramID):
		case ix.Data[0] == profile.Tags.TransactSwap:
			return "TransactSwap"
		case ix.Data[0] == profile.Tags.ExecuteSwap:
			return "ExecuteSwap"
		case ix.Data[0] == profile.Tags.CloseSwapState:
			return "CloseSwapState"
		}
	}
	return "another transaction"
}
