package tour

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/dev/terminal"
)

// keptRent is the rent that the relay does not get back, apart from the nullifiers' rent.
// account describes the account that keeps it.
type keptRent struct {
	lamports uint64
	account  string
}

// costs adds up the changes of the fee payer's balance in a swap's transactions, and checks
// the exact balances of the pool, the treasury and the fee payer.
func (t *tour) costs(ctx context.Context, o *order, before balances, kept keptRent) {
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
		terminal.Lamports(paid), terminal.Grouped(t.rent.nullifiers), kept.account, terminal.Grouped(kept.lamports), terminal.Grouped(fees))
	t.Print.Fact("treasury", "%s → %s", terminal.Grouped(before.treasury), terminal.Lamports(after.treasury))
	t.paidByRelay += paid
	check(
		equal("pool's lamports", before.pool-o.gross, after.pool),
		equal("treasury's lamports", before.treasury+o.gross-o.net, after.treasury),
		equal("fee payer's lamports", before.payer-t.rent.nullifiers-kept.lamports-fees, after.payer),
		equal("lamports that the fee payer paid in the swap's transactions", int64(paid), -sum)) //nolint:gosec // far below 2^63
}

func signed(lamports int64) string {
	if lamports < 0 {
		return "− " + terminal.Lamports(uint64(-lamports))
	}
	return "+ " + terminal.Lamports(uint64(lamports))
}

// checkTotals compares the sums of the tour's amounts with the balances, and requires that no
// submission is pending.
func (t *tour) checkTotals(ctx context.Context) {
	final := t.readBalances(ctx, solana.PublicKey{})
	pending := t.pending(ctx)
	var fees uint64
	for _, gross := range []uint64{payout, laterPayout, swapped, returned} {
		fees += t.pool.Profile.Fees.Fee(gross)
	}
	unspent := t.note.Amount + t.later.Amount
	t.Print.Fact("deposited", "%s", terminal.Lamports(depositAmount))
	t.Print.Fact("withdrawn", "%s", terminal.Lamports(payout+laterPayout))
	t.Print.Fact("swapped", "%s for %s; %s more were returned", terminal.Lamports(swapped), units(t.tokens), terminal.Grouped(returned))
	t.Print.Fact("fees of these", "%s", terminal.Lamports(fees))
	t.Print.Fact("left in the pool", "%s = %s in the wallet's notes and %s in the transferred note", terminal.Lamports(final.pool-t.openingBalances.pool), terminal.Grouped(unspent), terminal.Grouped(fundedLamports))
	t.Print.Fact("treasury", "%s more", terminal.Lamports(final.treasury-t.openingBalances.treasury))
	t.Print.Fact("the relay paid", "%s for two withdrawals, a transfer and two swaps", terminal.Lamports(t.openingBalances.payer-final.payer))
	t.Print.Fact(getBacklog, "%d pending", pending)
	check(
		equal("lamports in the pool, as the sum of the notes", unspent+fundedLamports, final.pool-t.openingBalances.pool),
		equal("lamports in the pool, as deposits minus payouts", uint64(depositAmount-payout-laterPayout-swapped-returned), final.pool-t.openingBalances.pool),
		equal("lamports that the relay paid", t.paidByRelay, t.openingBalances.payer-final.payer),
		equal("lamports that the treasury earned", fees, final.treasury-t.openingBalances.treasury),
		equal("submissions that are pending", int64(0), pending))
}
