package tour

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/hack/wallet/trade"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// tourMinimumBPS is the wallet's minimum in basis points of the quote.
	tourMinimumBPS = 9_900
)

type order struct {
	*submission
	terms shieldpool.SwapTerms
	// accounts are the accounts of the swap on the chain.
	accounts *shieldpool.Swap
	// gross leaves the pool and net is swapped, both in lamports.
	gross, net uint64
}

func (o *order) body() openapi.TransactSwapRequest {
	return must(trade.Request(o.proof[:], o.public.Bytes(), o.recipient, o.terms, o.notes))
}

// order asks the router for the price, as a wallet does before its user chooses a
// minimum, and proves a swap of gross lamports of the note. The rest stays in the notes
// change.
func (t *tour) order(ctx context.Context, note wallet.Note, gross int64, minimum func(quoted uint64) uint64, change ...wallet.Note) *order {
	recipient := t.newRecipient()
	o := &order{gross: uint64(gross)} //nolint:gosec // the tour's amounts are above zero
	fee := t.pool.Profile.Fees.Fee(o.gross)
	o.net = o.gross - fee
	router := trade.Router{URL: t.RouterURL, HTTP: t.HTTP}
	quoted := must(router.Quote(ctx, t.OutputMint, o.net))
	o.terms = must(trade.Terms(recipient, t.OutputMint, minimum(quoted)))
	t.Print.Fact("output mint", "%s", t.OutputMint)
	t.Print.Fact("router's quote", "%s for %s = %s − fee %s", units(quoted), terminal.Lamports(o.net), terminal.Grouped(o.gross), terminal.Grouped(fee))
	t.Print.Fact("minimum", "%s, bound to the proof", units(o.terms.MinOutput))
	o.submission = t.prove(ctx, wallet.Spend{
		Inputs: []wallet.Note{note}, Outputs: change, PublicAmount: -gross, ExtDataHash: wallet.SwapExtDataHash(o.terms), Leaves: t.leaves,
	})
	o.recipient = recipient
	o.accounts = must(t.pool.Swap(o.public.Nullifiers[0], o.terms))
	return o
}

// units formats an amount in the output mint's smallest unit.
func units(amount uint64) string { return terminal.Grouped(amount) + " units" }

// swap swaps a note for tokens of a recipient that has neither lamports nor tokens yet.
func (t *tour) swap(ctx context.Context) {
	before := t.readBalances(ctx, solana.PublicKey{})
	change := must(wallet.NewNote(t.Random, t.note.Amount-swapped, t.mint))
	o := t.order(ctx, t.note, swapped, func(quoted uint64) uint64 { return trade.Minimum(quoted, tourMinimumBPS) }, change)
	began := t.Now()
	answer := t.submitSwap(ctx, o)
	end := t.awaitSwapEnd(ctx, answer, began, func(*openapi.SubmissionStatus) {})
	if !trade.Executed(end) || end.SwapSignature == nil {
		check(fmt.Errorf("phase of the swap: expected executed, with its signature, received %v: %s", end.Status, text(end.Error)))
	}
	t.Print.Fact("signature", "%s", *end.SwapSignature)
	t.Print.Fact("recipient_ata", "%s", o.terms.RecipientATA)
	t.checkTokens(ctx, "  after", o, o.terms.MinOutput, true)
	t.checkSwapAccountsEmpty(ctx, o)
	t.Print.Fact("to the tokens", "%s from the submission", terminal.Seconds(t.Now().Sub(began)))
	t.costs(ctx, o, before, keptRent{t.rent.tokenAccount, "the recipient's new account"})
	t.note = change
	t.updateNote(ctx)
}

// submitSwap posts the swap and checks the relay's answer about its first leg.
func (t *tour) submitSwap(ctx context.Context, o *order) *openapi.SwapAnswer {
	body := o.body()
	t.Print.Fact("recipient", "%s", o.recipient)
	t.Print.Fact("recipient_ata", "%s", o.terms.RecipientATA)
	t.checkTokens(ctx, "  before", o, 0, false)
	began := t.Now()
	done := t.Print.Busy("%s until the chain confirms the first leg", postSwap)
	defer done()
	answer := must(t.trader().Submit(ctx, body))
	done()
	if answer.SwapStatePda == nil || answer.Data.SwapStatePda == nil || answer.Nullifier == nil || answer.Signature == nil || answer.Data.SwapPhase == nil {
		check(errors.New("an accepted swap whose first leg is confirmed must have its signature, swap_state_pda, nullifier and swap_phase"))
	}
	t.Print.Fact(postSwap, "%s in %s, request %s", *answer.Data.SwapPhase, terminal.Seconds(t.Now().Sub(began)), answer.RequestID)
	t.Print.Fact("signature", "%s", *answer.Signature)
	t.Print.Fact("swap_state_pda", "%s", *answer.SwapStatePda)
	check(
		equal("swap_state_pda", o.accounts.State.String(), *answer.SwapStatePda),
		equal("swap_state_pda", o.accounts.State.String(), *answer.Data.SwapStatePda),
		equal("nullifier", hex.EncodeToString(o.public.Nullifiers[0][:]), *answer.Nullifier))
	return answer
}

func (t *tour) trader() *trade.Relay { return &trade.Relay{Client: t.relay, Poll: pollInterval} }

// awaitSwapEnd polls the swap, prints each change of its status, and requires its end
// within pollTimeout.
func (t *tour) awaitSwapEnd(ctx context.Context, answer *openapi.SwapAnswer, began time.Time, changed func(*openapi.SubmissionStatus)) *openapi.SubmissionStatus {
	defer t.Print.Busy("GET /status until the swap is executed or refunded")()
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	return must(t.trader().Follow(ctx, answer.RequestID, func(s *openapi.SubmissionStatus) {
		t.Print.Fact("GET /status", "%s after %s", phase(s), terminal.Seconds(t.Now().Sub(began)))
		changed(s)
	}))
}

// phase describes a status in a few words.
func phase(s *openapi.SubmissionStatus) string {
	words := string(s.Status)
	if s.SwapPhase != nil {
		words += ", " + string(*s.SwapPhase)
	}
	if s.SwapWaits != nil {
		words += ", waits: " + *s.SwapWaits
	}
	return words
}

func text(s *string) string {
	if s == nil {
		return "without an error"
	}
	return *s
}

// checkTokens prints and checks the balance of the recipient's token account.
func (t *tour) checkTokens(ctx context.Context, label string, o *order, least uint64, wantExists bool) {
	amount, exists, err := trade.Tokens(ctx, t.chain.Client, o.terms.RecipientATA, rpc.CommitmentConfirmed)
	check(err)
	if exists {
		t.Print.Fact(label, "%s", units(amount))
	} else {
		t.Print.Fact(label, "does not exist yet")
	}
	if amount < least {
		check(fmt.Errorf("tokens of the recipient: expected at least the minimum of %d, received %d", least, amount))
	}
	t.tokens += amount
	check(equal("whether recipient_ata exists", wantExists, exists))
}

func (t *tour) checkSwapAccountsEmpty(ctx context.Context, o *order) {
	for name, key := range map[string]solana.PublicKey{"swap state": o.accounts.State, "wrapped SOL": o.accounts.WSOL, "output": o.accounts.Output} {
		check(equal("lamports left in the swap's account of "+name, uint64(0), t.chain.lamports(ctx, key)))
	}
}
