package tour

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/dev/terminal"
)

// kept is the rent that the relay does not get back, in lamports, and the accounts that
// keep it; the nullifiers' rent is not included.
type kept struct {
	lamports uint64
	in       string
}

// costs adds up what the relay paid for a swap and got back, transaction by
// transaction as the chain has them, and checks pool, treasury and payer to the
// lamport.
func (t *tour) costs(ctx context.Context, o *order, before balances, kept kept) {
	after := t.readBalances(ctx, solana.PublicKey{})
	var sum int64
	var fees uint64
	for _, r := range t.chain.receiptsOf(ctx, o.accounts.State) {
		check(equal("payer of the swap's transactions", t.FeePayer, r.tx.Message.AccountKeys[0]))
		sum += r.payerChange
		fees += r.fee
		t.Print.Fact("the relay", "%s by %s, network fee %s", signed(r.payerChange), r.purpose(t.pool.Profile), terminal.Grouped(r.fee))
	}
	paid := before.payer - after.payer
	t.Print.Fact("the relay paid", "%s: rent of nullifiers %s, rent that stays in %s %s, network fees %s",
		terminal.Lamports(paid), terminal.Grouped(nullifierRent), kept.in, terminal.Grouped(kept.lamports), terminal.Grouped(fees))
	t.Print.Fact("treasury", "%s → %s", terminal.Grouped(before.treasury), terminal.Lamports(after.treasury))
	t.paidByRelay += paid
	check(
		equal("pool's lamports", before.pool-o.gross, after.pool),
		equal("treasury's lamports", before.treasury+o.gross-o.net, after.treasury),
		equal("fee payer's lamports", before.payer-nullifierRent-kept.lamports-fees, after.payer),
		equal("what the swap's transactions took from the fee payer", int64(paid), -sum)) //nolint:gosec // far below
}

func signed(lamports int64) string {
	if lamports < 0 {
		return "− " + terminal.Lamports(uint64(-lamports))
	}
	return "+ " + terminal.Lamports(uint64(lamports))
}

// balance adds up the amounts that the tour moved, and checks for unfinished work.
func (t *tour) balance(ctx context.Context) {
	now := t.readBalances(ctx, solana.PublicKey{})
	pending := t.pending(ctx)
	var fees uint64
	for _, gross := range []uint64{payout, laterPayout, swapped, returned} {
		fees += t.pool.Profile.Fees.Fee(gross)
	}
	kept := t.note.Amount + t.later.Amount
	t.Print.Fact("deposited", "%s", terminal.Lamports(depositAmount))
	t.Print.Fact("withdrawn", "%s", terminal.Lamports(payout+laterPayout))
	t.Print.Fact("swapped", "%s for %s; %s more were returned", terminal.Lamports(swapped), units(t.tokens), terminal.Grouped(returned))
	t.Print.Fact("fees of these", "%s", terminal.Lamports(fees))
	t.Print.Fact("left in the pool", "%s = %s in the wallet's notes and %s in the given one", terminal.Lamports(now.pool-t.openingBalances.pool), terminal.Grouped(kept), terminal.Grouped(fundedLamports))
	t.Print.Fact("treasury", "%s more", terminal.Lamports(now.treasury-t.openingBalances.treasury))
	t.Print.Fact("the relay paid", "%s for two withdrawals, a transfer and two swaps", terminal.Lamports(t.openingBalances.payer-now.payer))
	t.Print.Fact(getBacklog, "%d pending", pending)
	check(
		equal("lamports left in the pool", kept+fundedLamports, now.pool-t.openingBalances.pool),
		equal("lamports left in the pool besides deposits and withdrawals", uint64(depositAmount-payout-laterPayout-swapped-returned), now.pool-t.openingBalances.pool),
		equal("lamports that the relay paid", t.paidByRelay, t.openingBalances.payer-now.payer),
		equal("lamports that the treasury earned", fees, now.treasury-t.openingBalances.treasury),
		equal("submissions that are pending", int64(0), pending))
}
