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

// nullifierRent is what a Transact's two nullifier accounts cost whoever pays
// for it (protocol.md §4), in lamports.
const nullifierRent = 2 * 890_880

// withdraw pays somebody who has nothing yet, through the relay.
func (t *tour) withdraw(ctx context.Context) error {
	recipient, err := t.stranger()
	if err != nil {
		return err
	}
	before, err := t.readBooks(ctx, recipient)
	if err != nil {
		return err
	}
	s, change, err := t.pay(ctx, t.note, t.leaves, payout, recipient)
	if err != nil {
		return err
	}
	result, err := t.transact(ctx, s)
	if err != nil {
		return err
	}
	if err := t.landed(ctx, result.SolanaSignature, result.Slot, result.LeafIndices, before, payout); err != nil {
		return err
	}
	t.spent, t.note, t.paid, t.signature = t.note, change, s, *result.SolanaSignature
	return t.follow(ctx)
}

// stranger makes a wallet that nobody has heard of.
func (t *tour) stranger() (solana.PublicKey, error) {
	public, _, err := ed25519.GenerateKey(t.Random)
	if err != nil {
		return solana.PublicKey{}, fmt.Errorf("make a wallet: %w", err)
	}
	return solana.PublicKey(public), nil
}

// books are the balances that a transaction can move, in lamports.
type books struct {
	who                              solana.PublicKey
	recipient, pool, treasury, payer uint64
}

func (t *tour) readBooks(ctx context.Context, recipient solana.PublicKey) (books, error) {
	b := books{who: recipient}
	for _, account := range []struct {
		key  solana.PublicKey
		into *uint64
	}{{recipient, &b.recipient}, {t.pool.Address, &b.pool}, {t.pool.Treasury, &b.treasury}, {t.FeePayer, &b.payer}} {
		if account.key.IsZero() {
			continue
		}
		var err error
		if *account.into, err = t.chain.lamports(ctx, account.key); err != nil {
			return b, err
		}
	}
	return b, nil
}

// landed holds the relay's answer against the chain, and every balance against
// the fee schedule. gross is 0 for a transfer.
func (t *tour) landed(ctx context.Context, answered *string, slot *int64, leaves []int64, before books, gross uint64) error {
	if answered == nil || slot == nil {
		return errors.New("a completed submission must have a signature and a slot")
	}
	signature, err := solana.SignatureFromBase58(*answered)
	if err != nil {
		return fmt.Errorf("solana_signature: %w", err)
	}
	receipt, err := t.chain.receipt(ctx, signature)
	if err != nil {
		return err
	}
	after, err := t.readBooks(ctx, before.who)
	if err != nil {
		return err
	}
	t.Print.Fact("signature", "%s", signature)
	t.Print.Fact("slot", "%s", terminal.Grouped(receipt.slot))
	t.Print.Fact("leaves", "%d and %d", len(t.leaves), len(t.leaves)+1)
	if err := errors.Join(
		equal("slot", int64(receipt.slot), *slot), //nolint:gosec // a slot
		equal("leaf_indices", fmt.Sprint([]int{len(t.leaves), len(t.leaves) + 1}), fmt.Sprint(leaves)),
		equal("the transaction's payer", t.FeePayer, receipt.tx.Message.AccountKeys[0]),
		equal("presence of the depositor's wallet in the transaction", false, slices.Contains(receipt.tx.Message.AccountKeys, t.wallet.PublicKey())),
	); err != nil {
		return err
	}
	return t.moved(before, after, gross, receipt.fee)
}

// moved prints the balances and checks them to the lamport.
func (t *tour) moved(before, after books, gross, networkFee uint64) error {
	var fee, net uint64
	if gross > 0 {
		fee = t.pool.Profile.Fees.Fee(gross)
		net = gross - fee
		t.Print.Fact("recipient", "%s", before.who)
		t.Print.Fact("  before", "%s", terminal.Lamports(before.recipient))
		t.Print.Fact("  after", "%s = %s − fee %s", terminal.Lamports(after.recipient), terminal.Grouped(gross), terminal.Grouped(fee))
	}
	t.paidByRelay += before.payer - after.payer
	t.Print.Fact("treasury", "%s → %s", terminal.Grouped(before.treasury), terminal.Lamports(after.treasury))
	t.Print.Fact("the relay paid", "%s: rent %s, network fee %s", terminal.Lamports(before.payer-after.payer), terminal.Grouped(nullifierRent), terminal.Grouped(networkFee))
	return errors.Join(
		equal("recipient's lamports", before.recipient+net, after.recipient),
		equal("treasury's lamports", before.treasury+fee, after.treasury),
		equal("pool's lamports", before.pool-gross, after.pool),
		equal("fee payer's lamports", before.payer-nullifierRent-networkFee, after.payer))
}

// follow reads the two new leaves and finds the wallet's note.
func (t *tour) follow(ctx context.Context) error {
	if _, err := t.refresh(ctx, len(t.leaves)+2); err != nil {
		return err
	}
	return t.note.Locate(t.leaves)
}

// repeat sends what has landed once more, as a client does that lost the answer.
func (t *tour) repeat(ctx context.Context) error {
	before, err := t.readBooks(ctx, t.paid.recipient)
	if err != nil {
		return err
	}
	result, err := t.transact(ctx, t.paid)
	if err != nil {
		return err
	}
	after, err := t.readBooks(ctx, t.paid.recipient)
	if err != nil {
		return err
	}
	if result.SolanaSignature == nil {
		return errors.New("a repeated submission must answer with the first one's signature, received none")
	}
	t.Print.Fact("signature", "the same; nobody paid or was paid")
	return errors.Join(
		equal("signature of the repeated submission", t.signature, *result.SolanaSignature),
		equal("balances after the repeated submission", before, after))
}

// withdrawLater takes the asynchronous form and follows it until no fork can
// undo it.
func (t *tour) withdrawLater(ctx context.Context) error {
	recipient, err := t.stranger()
	if err != nil {
		return err
	}
	before, err := t.readBooks(ctx, recipient)
	if err != nil {
		return err
	}
	s, change, err := t.pay(ctx, t.note, t.leaves, laterPayout, recipient)
	if err != nil {
		return err
	}
	began := t.Now()
	answer, err := t.relay.WithdrawWithResponse(ctx, nil, s.body())
	if err != nil {
		return fmt.Errorf("POST %s: %w", contract.WithdrawPath, err)
	}
	if answer.JSON202 == nil {
		return unexpected("POST "+contract.WithdrawPath, "202", answer.HTTPResponse, answer.Body)
	}
	id := answer.JSON202.Data.RequestID
	t.Print.Fact("POST "+contract.WithdrawPath, "202 in %s: %s", terminal.Seconds(t.Now().Sub(began)), answer.JSON202.Data.Status)
	t.Print.Fact("Location", "%s", answer.HTTPResponse.Header.Get("Location"))
	if err := equal("Location", "/status/"+id.String(), answer.HTTPResponse.Header.Get("Location")); err != nil {
		return err
	}
	completed, err := t.status(ctx, id, "completed", func(s *openapi.SubmissionStatus) bool { return s.Status == openapi.JobStatusCompleted })
	if err != nil {
		return err
	}
	t.Print.Fact("GET /status", "completed after %s", terminal.Seconds(t.Now().Sub(began)))
	if err := t.landed(ctx, completed.SolanaSignature, completed.Slot, completed.LeafIndices, before, laterPayout); err != nil {
		return err
	}
	t.note = change
	if err := t.follow(ctx); err != nil {
		return err
	}
	if _, err := t.status(ctx, id, "finalized", func(s *openapi.SubmissionStatus) bool { return s.Finalized }); err != nil {
		return err
	}
	t.Print.Fact("GET /status", "finalized after %s: no fork can undo it", terminal.Seconds(t.Now().Sub(began)))
	return nil
}

// status asks for a submission until it is as wanted.
func (t *tour) status(ctx context.Context, id uuid.UUID, what string, wanted func(*openapi.SubmissionStatus) bool) (found *openapi.SubmissionStatus, err error) {
	defer t.Print.Busy("GET /status until it is %s", what)()
	err = poll(ctx, "the submission is "+what, func(ctx context.Context) (bool, error) {
		answer, err := t.relay.GetStatusWithResponse(ctx, id)
		if err != nil {
			return false, fmt.Errorf("GET /status: %w", err)
		}
		if answer.JSON200 == nil {
			return false, unexpected("GET /status", http.StatusText(http.StatusOK), answer.HTTPResponse, answer.Body)
		}
		found = &answer.JSON200.Data
		if found.Status == openapi.JobStatusFailed {
			return false, unexpected("GET /status", "a submission that does not fail", answer.HTTPResponse, answer.Body)
		}
		return wanted(found), nil
	})
	return found, err
}
