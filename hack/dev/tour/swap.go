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
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// stateRent is what a swap's state costs while the swap is under way, and
	// tokenRent what a token account does (protocol.md §4), in lamports.
	stateRent = 2_011_440
	tokenRent = 2_039_280
	// contentBPS is the part of a quote that the wallet is content with.
	contentBPS = 9_900
)

// order is a proven swap.
type order struct {
	*submission
	terms shieldpool.SwapTerms
	// accounts are those of the swap on the chain.
	accounts *shieldpool.Swap
	// gross leaves the pool and net is swapped, both in lamports, for what the
	// router quoted.
	gross, net, quoted uint64
}

func (o *order) body() (openapi.TransactSwapRequest, error) {
	return trade.Request(o.proof[:], o.public.Bytes(), o.recipient, o.terms, o.notes)
}

// order asks the router for the price, as a wallet does before its user settles
// on a minimum, and proves a swap of the note. What is left stays in notes of
// the amounts of change.
func (t *tour) order(ctx context.Context, note wallet.Note, gross int64, minimum func(quoted uint64) uint64, change ...wallet.Note) (*order, error) {
	recipient, err := t.stranger()
	if err != nil {
		return nil, err
	}
	o := &order{gross: uint64(gross)} //nolint:gosec // the tour's amounts are above zero
	fee := t.pool.Profile.Fees.Fee(o.gross)
	o.net = o.gross - fee
	router := trade.Router{URL: t.RouterURL, HTTP: t.HTTP}
	if o.quoted, err = router.Quote(ctx, t.OutputMint, o.net); err != nil {
		return nil, err
	}
	if o.terms, err = trade.Terms(recipient, t.OutputMint, minimum(o.quoted)); err != nil {
		return nil, err
	}
	t.Print.Fact("output mint", "%s", t.OutputMint)
	t.Print.Fact("router's quote", "%s for %s = %s − fee %s", units(o.quoted), terminal.Lamports(o.net), terminal.Grouped(o.gross), terminal.Grouped(fee))
	t.Print.Fact("minimum", "%s, bound to the proof", units(o.terms.MinOutput))
	if o.submission, err = t.prove(ctx, wallet.Spend{
		Inputs: []wallet.Note{note}, Outputs: change, PublicAmount: -gross, ExtDataHash: wallet.SwapExtDataHash(o.terms), Leaves: t.leaves,
	}); err != nil {
		return nil, err
	}
	o.recipient = recipient
	o.accounts, err = t.pool.Swap(o.public.Nullifiers[0], o.terms)
	return o, err
}

// units writes an amount of the output mint, in its smallest unit.
func units(amount uint64) string { return terminal.Grouped(amount) + " units" }

// swap goes from a note to tokens in the account of somebody who has neither
// lamports nor tokens yet.
func (t *tour) swap(ctx context.Context) error {
	before, err := t.readBooks(ctx, solana.PublicKey{})
	if err != nil {
		return err
	}
	change, err := wallet.NewNote(t.Random, t.note.Amount-swapped, t.mint)
	if err != nil {
		return err
	}
	o, err := t.order(ctx, t.note, swapped, func(quoted uint64) uint64 { return trade.Minimum(quoted, contentBPS) }, change)
	if err != nil {
		return err
	}
	began := t.Now()
	answer, err := t.begin(ctx, o)
	if err != nil {
		return err
	}
	end, err := t.settle(ctx, answer, began, nil)
	if err != nil {
		return err
	}
	if !trade.Executed(end) || end.SwapSignature == nil {
		return fmt.Errorf("phase of the swap: expected executed, with its signature, received %v: %s", end.Status, text(end.Error))
	}
	t.Print.Fact("signature", "%s", *end.SwapSignature)
	if err := t.bought(ctx, o); err != nil {
		return err
	}
	t.Print.Fact("to the tokens", "%s from the submission", terminal.Seconds(t.Now().Sub(began)))
	if err := t.costs(ctx, o, before, kept{tokenRent, "the recipient's new account"}); err != nil {
		return err
	}
	t.note = change
	return t.follow(ctx)
}

// begin posts the swap and checks what the relay says of its first leg.
func (t *tour) begin(ctx context.Context, o *order) (*openapi.SwapAnswer, error) {
	body, err := o.body()
	if err != nil {
		return nil, err
	}
	t.Print.Fact("recipient", "%s", o.recipient)
	t.Print.Fact("recipient_ata", "%s", o.terms.RecipientATA)
	if err := t.holds(ctx, "  before", o, 0, false); err != nil {
		return nil, err
	}
	began := t.Now()
	done := t.Print.Busy("POST %s until the chain confirms the first leg", contract.TransactSwapPath)
	defer done()
	answer, err := t.trader().Submit(ctx, body)
	if err != nil {
		return nil, err
	}
	done()
	if answer.SwapStatePda == nil || answer.Data.SwapStatePda == nil || answer.Nullifier == nil || answer.Signature == nil || answer.Data.SwapPhase == nil {
		return nil, errors.New("an accepted swap whose first leg is confirmed must have its signature, swap_state_pda, nullifier and swap_phase")
	}
	t.Print.Fact("POST "+contract.TransactSwapPath, "%s in %s, request %s", *answer.Data.SwapPhase, terminal.Seconds(t.Now().Sub(began)), answer.RequestID)
	t.Print.Fact("signature", "%s", *answer.Signature)
	t.Print.Fact("swap_state_pda", "%s", *answer.SwapStatePda)
	return answer, errors.Join(
		equal("swap_state_pda", o.accounts.State.String(), *answer.SwapStatePda),
		equal("swap_state_pda", o.accounts.State.String(), *answer.Data.SwapStatePda),
		equal("nullifier", hex.EncodeToString(o.public.Nullifiers[0][:]), *answer.Nullifier))
}

func (t *tour) trader() *trade.Relay { return &trade.Relay{Client: t.relay, Poll: pollInterval} }

// settle follows the second leg and prints what changes. The end must be
// confirmed in time.
func (t *tour) settle(ctx context.Context, answer *openapi.SwapAnswer, began time.Time, changed func(context.Context, *openapi.SubmissionStatus) error) (*openapi.SubmissionStatus, error) {
	defer t.Print.Busy("GET /status until the swap is executed or refunded")()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	return t.trader().Follow(ctx, answer.RequestID, func(s *openapi.SubmissionStatus) {
		t.Print.Fact("GET /status", "%s after %s", phase(s), terminal.Seconds(t.Now().Sub(began)))
		if changed == nil {
			return
		}
		if err := changed(ctx, s); err != nil {
			stop(err)
		}
	})
}

// phase is a status in a few words.
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

// holds prints and checks what the recipient's token account has.
func (t *tour) holds(ctx context.Context, label string, o *order, least uint64, exists bool) error {
	amount, there, err := trade.Tokens(ctx, t.chain.Client, o.terms.RecipientATA, rpc.CommitmentConfirmed)
	if err != nil {
		return err
	}
	if !there {
		t.Print.Fact(label, "does not exist yet")
		return equal("existence of recipient_ata", exists, there)
	}
	t.Print.Fact(label, "%s", units(amount))
	if amount < least {
		return fmt.Errorf("tokens of the recipient: expected at least the minimum of %d, received %d", least, amount)
	}
	t.tokens += amount
	return equal("existence of recipient_ata", exists, there)
}

// bought checks that the tokens are there and nothing of the swap is left.
func (t *tour) bought(ctx context.Context, o *order) error {
	t.Print.Fact("recipient_ata", "%s", o.terms.RecipientATA)
	if err := t.holds(ctx, "  after", o, o.terms.MinOutput, true); err != nil {
		return err
	}
	return t.nothingLeft(ctx, o)
}

func (t *tour) nothingLeft(ctx context.Context, o *order) error {
	for name, key := range map[string]solana.PublicKey{"swap state": o.accounts.State, "wrapped SOL": o.accounts.WSOL, "output": o.accounts.Output} {
		left, err := t.chain.lamports(ctx, key)
		if err != nil {
			return err
		}
		if err := equal("lamports left in the swap's account of "+name, uint64(0), left); err != nil {
			return err
		}
	}
	return nil
}
