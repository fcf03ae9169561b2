package tour

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/hack/wallet/trade"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/openapi"
)

const (
	// watched are the slots that pass before the reader's eyes, and leftToWait
	// those before the timeout that are not passed over.
	watched, leftToWait = 5, 10
	// slotTime is that of mainnet and of the local chain.
	slotTime = 400 * time.Millisecond
)

// refund swaps for twice what the market gives: the relay waits for a price
// until the timeout slot, and then gives the lamports to the recipient's wallet.
func (t *tour) refund(ctx context.Context) error {
	before, err := t.readBooks(ctx, solana.PublicKey{})
	if err != nil {
		return err
	}
	if t.later, err = wallet.NewNote(t.Random, reserved, t.mint); err != nil {
		return err
	}
	change, err := wallet.NewNote(t.Random, t.note.Amount-returned-reserved, t.mint)
	if err != nil {
		return err
	}
	o, err := t.order(ctx, t.note, returned, func(quoted uint64) uint64 { return 2 * quoted }, change, t.later)
	if err != nil {
		return err
	}
	began := t.Now()
	answer, err := t.begin(ctx, o)
	if err != nil {
		return err
	}
	skipped := false
	end, err := t.settle(ctx, answer, began, func(ctx context.Context, s *openapi.SubmissionStatus) error {
		if skipped || s.SwapWaits == nil {
			return nil
		}
		skipped = true
		return t.skipTo(ctx, s)
	})
	if err != nil {
		return err
	}
	if !trade.Refunded(end) || end.RefundSignature == nil || end.ErrorCode == nil {
		return fmt.Errorf("phase of the swap: expected refunded, with its signature and error_code, received %v: %s", end.Status, text(end.Error))
	}
	t.Print.Fact("error_code", "%s", *end.ErrorCode)
	t.Print.Fact("", "%s", text(end.Error))
	t.Print.Fact("signature", "%s", *end.RefundSignature)
	if err := t.gotBack(ctx, o); err != nil {
		return err
	}
	if err := t.costs(ctx, o, before, kept{stateRent, "the recipient's wallet"}); err != nil {
		return err
	}
	if err := t.repeatRefunded(ctx, o, *end.RefundSignature); err != nil {
		return err
	}
	t.note = change
	if err := t.follow(ctx); err != nil {
		return err
	}
	return errors.Join(t.later.Locate(t.leaves), equal("whether the swap waited", true, skipped), equal("error_code", string(openapi.ErrorCodeSwapRefunded), *end.ErrorCode))
}

// skipTo waits a little, and has the local chain pass over most of what is left
// until the timeout.
func (t *tour) skipTo(ctx context.Context, s *openapi.SubmissionStatus) error {
	if s.SwapTimeoutSlot == nil {
		return errors.New("a swap whose first leg is confirmed must have its swap_timeout_slot")
	}
	t.Print.Fact("swap_timeout_slot", "%s", terminal.Grouped(uint64(*s.SwapTimeoutSlot))) //nolint:gosec // a slot
	first, err := t.slotsLeft(ctx, *s.SwapTimeoutSlot)
	if err != nil {
		return err
	}
	t.printLeft(first)
	left := first
	if err := poll(ctx, "some slots have passed", func(ctx context.Context) (bool, error) {
		left, err = t.slotsLeft(ctx, *s.SwapTimeoutSlot)
		return left <= first-watched, err
	}); err != nil {
		return err
	}
	t.printLeft(left)
	if left <= leftToWait {
		return nil
	}
	if err := t.skip(ctx, left-leftToWait); err != nil {
		return err
	}
	t.Print.Fact("", "the local chain passes over %d of them at once, by its admin port, so that you need not wait", left-leftToWait)
	return nil
}

func (t *tour) slotsLeft(ctx context.Context, timeout int64) (int64, error) {
	slot, err := t.chain.GetSlot(ctx, rpc.CommitmentConfirmed)
	if err != nil {
		return 0, fmt.Errorf("read the slot: %w", err)
	}
	return timeout - int64(slot), nil //nolint:gosec // a slot
}

func (t *tour) printLeft(slots int64) {
	t.Print.Fact("", "%d slots left: %s", slots, terminal.Seconds(time.Duration(slots)*slotTime))
}

// skip has the local chain pass over slots without a block.
func (t *tour) skip(ctx context.Context, slots int64) (err error) {
	body, err := json.Marshal(map[string]int64{"slots": slots})
	if err != nil {
		return fmt.Errorf("skip slots: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.AdminURL+"/skip", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("skip slots: %w", err)
	}
	answer, err := t.HTTP.Do(request)
	if err != nil {
		return fmt.Errorf("skip slots: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("skip slots: the chain's admin port answers %s", answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// gotBack checks that all that the swap held is in the recipient's wallet.
func (t *tour) gotBack(ctx context.Context, o *order) error {
	holds, err := t.chain.lamports(ctx, o.recipient)
	if err != nil {
		return err
	}
	t.Print.Fact("  wallet", "0 → %s = %s and the swap state's rent %s", terminal.Lamports(holds), terminal.Grouped(o.net), terminal.Grouped(stateRent))
	return errors.Join(
		equal("lamports of the recipient's wallet", o.net+stateRent, holds),
		t.holds(ctx, "  recipient_ata", o, 0, false),
		t.nothingLeft(ctx, o))
}

// repeatRefunded sends the same swap again, which says where the lamports are.
func (t *tour) repeatRefunded(ctx context.Context, o *order, refund string) error {
	body, err := o.body()
	if err != nil {
		return err
	}
	answer, err := t.relay.TransactSwapWithResponse(ctx, nil, body)
	if err != nil {
		return fmt.Errorf("POST %s: %w", contract.TransactSwapPath, err)
	}
	if answer.JSON409 == nil || answer.JSON409.RefundSignature == nil {
		return unexpected("POST "+contract.TransactSwapPath, "409 with refund_signature", answer.HTTPResponse, answer.Body)
	}
	t.Print.Fact("the same again", "409 %s, with the refund's signature", answer.JSON409.Code)
	return errors.Join(
		equal("code", openapi.ErrorCodeSwapRefunded, answer.JSON409.Code),
		equal("refund_signature", refund, *answer.JSON409.RefundSignature))
}
