package tour

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/hack/wallet/trade"
	"github.com/relaypool/relaypool/relay/openapi"
)

const (
	// watchedSlots slots pass in real time before the skip, and slotsAfterSkip after it.
	watchedSlots, slotsAfterSkip = 5, 10
	// slotTime is the slot duration of mainnet and of the local chain.
	slotTime = 200 * time.Millisecond
)

// refund asks for twice the output that the market gives. The relay waits for this price
// until the timeout slot, and then refunds the lamports to the recipient's wallet.
func (t *tour) refund(ctx context.Context) {
	before := t.readBalances(ctx, solana.PublicKey{})
	t.later = must(wallet.NewNote(t.Random, reserved, t.mint))
	change := must(wallet.NewNote(t.Random, t.note.Amount-returned-reserved, t.mint))
	o := t.order(ctx, t.note, returned, func(quoted uint64) uint64 { return 2 * quoted }, change, t.later)
	began := t.Now()
	answer := t.submitSwap(ctx, o)
	skipped := false
	end := t.awaitSwapEnd(ctx, answer, began, func(s *openapi.SubmissionStatus) {
		if !skipped && s.SwapWaits != nil {
			skipped = true
			t.skipToTimeout(ctx, s)
		}
	})
	if !trade.Refunded(end) || end.RefundSignature == nil || end.ErrorCode == nil {
		check(fmt.Errorf("phase of the swap: expected refunded, with its signature and error_code, received %v: %s", end.Status, text(end.Error)))
	}
	t.Print.Fact("error_code", "%s", *end.ErrorCode)
	t.Print.Fact("", "%s", text(end.Error))
	t.Print.Fact("signature", "%s", *end.RefundSignature)
	t.checkRefund(ctx, o)
	t.costs(ctx, o, before, keptRent{t.rent.swapState, "the recipient's wallet"})
	t.repeatRefunded(ctx, o, *end.RefundSignature)
	t.note = change
	t.updateNote(ctx)
	check(t.later.Locate(t.leaves), equal("whether the swap waited", true, skipped), equal("error_code", string(openapi.ErrorCodeSwapRefunded), *end.ErrorCode))
}

// skipToTimeout waits a few slots, and makes the local chain skip most of the slots before
// the timeout.
func (t *tour) skipToTimeout(ctx context.Context, s *openapi.SubmissionStatus) {
	if s.SwapTimeoutSlot == nil {
		check(errors.New("a swap whose first leg is confirmed must have its swap_timeout_slot"))
	}
	t.Print.Fact("swap_timeout_slot", "%s", terminal.Grouped(uint64(*s.SwapTimeoutSlot))) //nolint:gosec // a slot
	first := t.slotsLeft(ctx, *s.SwapTimeoutSlot)
	t.printLeft(first)
	left := first
	poll(ctx, "some slots have passed", func(ctx context.Context) bool {
		left = t.slotsLeft(ctx, *s.SwapTimeoutSlot)
		return left <= first-watchedSlots
	})
	t.printLeft(left)
	if left > slotsAfterSkip {
		t.skip(ctx, left-slotsAfterSkip)
		t.Print.Fact("", "the local chain skips %d of them, by its admin port, so that you need not wait", left-slotsAfterSkip)
	}
}

func (t *tour) slotsLeft(ctx context.Context, timeout int64) int64 {
	slot, err := t.chain.GetSlot(ctx, rpc.CommitmentConfirmed)
	withContext("read the slot", err)
	return timeout - int64(slot) //nolint:gosec // a slot
}

func (t *tour) printLeft(slots int64) {
	t.Print.Fact("", "%d slots left: %s", slots, terminal.Seconds(time.Duration(slots)*slotTime))
}

func (t *tour) skip(ctx context.Context, slots int64) {
	body := strings.NewReader(fmt.Sprintf(`{"slots":%d}`, slots))
	request := must(http.NewRequestWithContext(ctx, http.MethodPost, t.AdminURL+"/skip", body))
	answer, err := t.HTTP.Do(request)
	withContext("skip slots", err)
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("skip slots: the chain's admin port answers %s", answer.Status)
	}
	check(err, answer.Body.Close())
}

// checkRefund checks that all lamports of the swap are in the recipient's wallet.
func (t *tour) checkRefund(ctx context.Context, o *order) {
	holds := t.chain.lamports(ctx, o.recipient)
	t.Print.Fact("  wallet", "0 → %s = %s and the swap state's rent %s", terminal.Lamports(holds), terminal.Grouped(o.net), terminal.Grouped(t.rent.swapState))
	check(equal("lamports of the recipient's wallet", o.net+t.rent.swapState, holds))
	t.checkTokens(ctx, "  recipient_ata", o, 0, false)
	t.checkSwapAccountsEmpty(ctx, o)
}

// repeatRefunded sends the same swap again. The answer must name the refund's transaction.
func (t *tour) repeatRefunded(ctx context.Context, o *order, refund string) {
	answer, err := t.relay.TransactSwapWithResponse(ctx, nil, o.body())
	withContext(postSwap, err)
	checkAnswer(answer.JSON409 != nil && answer.JSON409.RefundSignature != nil, postSwap, "409 with refund_signature", answer.HTTPResponse, answer.Body)
	t.Print.Fact("the same again", "409 %s, with the refund's signature", answer.JSON409.Code)
	check(
		equal("code", openapi.ErrorCodeSwapRefunded, answer.JSON409.Code),
		equal("refund_signature", refund, *answer.JSON409.RefundSignature))
}
