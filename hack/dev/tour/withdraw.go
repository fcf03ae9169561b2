package tour

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/openapi"
)

// withdraw pays a recipient without an account, through the relay.
func (t *tour) withdraw(ctx context.Context) {
	recipient := t.newRecipient()
	before := t.readBalances(ctx, recipient)
	s, change := t.pay(ctx, t.note, t.leaves, payout, recipient)
	result := t.transact(ctx, s)
	t.checkLanded(ctx, result.SolanaSignature, result.Slot, result.LeafIndices, before, payout)
	t.spent, t.note, t.paid, t.signature = t.note, change, s, *result.SolanaSignature
	t.updateNote(ctx)
}

func (t *tour) newRecipient() solana.PublicKey {
	public, _, err := ed25519.GenerateKey(t.Random)
	withContext("make a wallet", err)
	return solana.PublicKey(public)
}

// balances are the balances that a transaction can change, in lamports.
type balances struct {
	recipientKey                     solana.PublicKey
	recipient, pool, treasury, payer uint64
}

func (t *tour) readBalances(ctx context.Context, recipient solana.PublicKey) balances {
	b := balances{recipientKey: recipient}
	for key, into := range map[solana.PublicKey]*uint64{recipient: &b.recipient, t.pool.Address: &b.pool, t.pool.Treasury: &b.treasury, t.FeePayer: &b.payer} {
		if !key.IsZero() {
			*into = t.chain.lamports(ctx, key)
		}
	}
	return b
}

// checkLanded compares the relay's answer with the transaction on the chain, and the balances
// with the fee schedule. gross is 0 for a transfer.
func (t *tour) checkLanded(ctx context.Context, answer *string, slot *int64, leaves []int64, before balances, gross uint64) {
	if answer == nil || slot == nil {
		check(errors.New("a completed submission must have a signature and a slot"))
	}
	signature, err := solana.SignatureFromBase58(*answer)
	withContext("solana_signature", err)
	receipt := t.chain.receipt(ctx, signature)
	after := t.readBalances(ctx, before.recipientKey)
	t.Print.Fact("signature", "%s", signature)
	t.Print.Fact("slot", "%s", terminal.Grouped(receipt.slot))
	t.Print.Fact("leaves", "%d and %d", len(t.leaves), len(t.leaves)+1)
	check(
		equal("slot", int64(receipt.slot), *slot), //nolint:gosec // a slot
		equal("leaf_indices", fmt.Sprint([]int{len(t.leaves), len(t.leaves) + 1}), fmt.Sprint(leaves)),
		equal("the transaction's payer", t.FeePayer, receipt.tx.Message.AccountKeys[0]),
		equal("whether the depositor's wallet is in the transaction", false, slices.Contains(receipt.tx.Message.AccountKeys, t.wallet.PublicKey())))
	t.checkBalances(before, after, gross, receipt.fee)
}

// checkBalances prints the balances and checks them exactly.
func (t *tour) checkBalances(before, after balances, gross, networkFee uint64) {
	var fee, net uint64
	if gross > 0 {
		fee = t.pool.Profile.Fees.Fee(gross)
		net = gross - fee
		t.Print.Fact("recipient", "%s", before.recipientKey)
		t.Print.Fact("  before", "%s", terminal.Lamports(before.recipient))
		t.Print.Fact("  after", "%s = %s − fee %s", terminal.Lamports(after.recipient), terminal.Grouped(gross), terminal.Grouped(fee))
	}
	t.paidByRelay += before.payer - after.payer
	t.Print.Fact("treasury", "%s → %s", terminal.Grouped(before.treasury), terminal.Lamports(after.treasury))
	t.Print.Fact("the relay paid", "%s: rent %s, network fee %s", terminal.Lamports(before.payer-after.payer), terminal.Grouped(t.rent.nullifiers), terminal.Grouped(networkFee))
	check(
		equal("recipient's lamports", before.recipient+net, after.recipient),
		equal("treasury's lamports", before.treasury+fee, after.treasury),
		equal("pool's lamports", before.pool-gross, after.pool),
		equal("fee payer's lamports", before.payer-t.rent.nullifiers-networkFee, after.payer))
}

// updateNote reads the two new leaves and finds the wallet's note among them.
func (t *tour) updateNote(ctx context.Context) {
	t.refresh(ctx, len(t.leaves)+2)
	check(t.note.Locate(t.leaves))
}

// repeat sends the landed submission again, like a client that lost the answer.
func (t *tour) repeat(ctx context.Context) {
	before := t.readBalances(ctx, t.paid.recipient)
	result := t.transact(ctx, t.paid)
	after := t.readBalances(ctx, t.paid.recipient)
	if result.SolanaSignature == nil {
		check(errors.New("a repeated submission must answer with the first submission's signature, received none"))
	}
	t.Print.Fact("signature", "the same; no balance changed")
	check(
		equal("signature of the repeated submission", t.signature, *result.SolanaSignature),
		equal("balances after the repeated submission", before, after))
}

// withdrawLater uses the asynchronous request and polls until no fork can undo the
// withdrawal.
func (t *tour) withdrawLater(ctx context.Context) {
	recipient := t.newRecipient()
	before := t.readBalances(ctx, recipient)
	s, change := t.pay(ctx, t.note, t.leaves, laterPayout, recipient)
	began := t.Now()
	const call = "POST " + contract.WithdrawPath
	answer, err := t.relay.WithdrawWithResponse(ctx, nil, s.body())
	withContext(call, err)
	checkAnswer(answer.JSON202 != nil, call, "202", answer.HTTPResponse, answer.Body)
	id, location := answer.JSON202.Data.RequestID, answer.HTTPResponse.Header.Get("Location")
	t.Print.Fact(call, "202 in %s: %s", terminal.Seconds(t.Now().Sub(began)), answer.JSON202.Data.Status)
	t.Print.Fact("Location", "%s", location)
	check(equal("Location", "/status/"+id.String(), location))
	completed := t.status(ctx, id, "completed", func(s *openapi.SubmissionStatus) bool { return s.Status == openapi.JobStatusCompleted })
	t.Print.Fact("GET /status", "completed after %s", terminal.Seconds(t.Now().Sub(began)))
	t.checkLanded(ctx, completed.SolanaSignature, completed.Slot, completed.LeafIndices, before, laterPayout)
	t.note = change
	t.updateNote(ctx)
	t.status(ctx, id, "finalized", func(s *openapi.SubmissionStatus) bool { return s.Finalized })
	t.Print.Fact("GET /status", "finalized after %s: no fork can undo it", terminal.Seconds(t.Now().Sub(began)))
}

func (t *tour) status(ctx context.Context, id uuid.UUID, what string, wanted func(*openapi.SubmissionStatus) bool) (found *openapi.SubmissionStatus) {
	const call = "GET /status"
	defer t.Print.Busy("%s until it is %s", call, what)()
	poll(ctx, "the submission is "+what, func(ctx context.Context) bool {
		answer, err := t.relay.GetStatusWithResponse(ctx, id)
		withContext(call, err)
		checkAnswer(answer.JSON200 != nil, call, http.StatusText(http.StatusOK), answer.HTTPResponse, answer.Body)
		found = &answer.JSON200.Data
		checkAnswer(found.Status != openapi.JobStatusFailed, call, "a submission that does not fail", answer.HTTPResponse, answer.Body)
		return wanted(found)
	})
	return found
}
