package swap

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// checkWait fails unless err is a deferral for the reason, which was counted.
func checkWait(t *testing.T, w *world, err error, reason string) txmgr.Deferral {
	t.Helper()
	var wait *txmgr.Deferral
	if !errors.As(err, &wait) || wait.Reason != reason {
		t.Fatalf("error is %v, want a wait for %s", err, reason)
	}
	if !slices.Contains(Reasons(), wait.Reason) || !slices.Contains(w.events.deferrals, reason) {
		t.Errorf("reason %s is not one of Reasons, or was not counted: %v", reason, w.events.deferrals)
	}
	if wait.Cause == nil || wait.Delay < minWait || wait.Delay > maxWait {
		t.Errorf("the delay is %s and the cause %v, want %s to %s and a cause", wait.Delay, wait.Cause, minWait, maxWait)
	}
	for _, secret := range []solana.PublicKey{w.swap.State, w.wallet, w.swap.Terms.RecipientATA, w.swap.Terms.OutputMint} {
		if strings.Contains(wait.Error(), secret.String()) || strings.Contains(w.events.log.String(), secret.String()) {
			t.Errorf("the error or the log contains an address of the swap: %s", wait)
		}
	}
	return *wait
}

// TestTimeoutReportedByOneEndpointIsNotRecorded: later reads require the slot of the
// first leg, which is derived from the timeout. After a false timeout far ahead, no
// node could answer them.
func TestTimeoutReportedByOneEndpointIsNotRecorded(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{"two endpoints report the slot": false, "one endpoint reports the slot": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(w *world) { w.createTokenAccounts() })
			w.chain.slot, w.chain.uncorroborated = 1<<61+10, alone
			w.putSwapState(func(s *shieldpool.SwapState) { s.CreatedSlot, s.TimeoutSlot = 1<<61, 1<<61+200 })
			want := uint64(1<<61 + 200)
			if alone {
				want = testTimeout
			}
			order, err := w.planner.Next(t.Context(), w.submission, 0, testCreated+5)
			if err != nil || order.Timeout != want {
				t.Errorf("the timeout to record is %d, error %v, want %d", order.Timeout, err, want)
			}
		})
	}
}

// TestFalseSlotDoesNotPreventExecution: only one endpoint reports a slot past the
// timeout, and the program refuses the refund as too early.
func TestFalseSlotDoesNotPreventExecution(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		alone bool
		later time.Duration
		want  txmgr.Purpose
	}{
		"soon after the refusal":                          {true, time.Second, txmgr.PurposeExecute},
		"long after the refusal, a refund is tried again": {true, ignoreSlotFor, txmgr.PurposeRefund},
		"other endpoints confirm the slot":                {false, time.Second, txmgr.PurposeRefund},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(w *world) { w.createTokenAccounts() })
			w.chain.slot, w.chain.uncorroborated = 1<<40, test.alone
			order, err := w.next()
			if err != nil || order.Draft == nil || order.Draft.Purpose != txmgr.PurposeRefund {
				t.Fatalf("the order is %+v, error %v, want a refund", order, err)
			}
			notReady := &txmgr.Failure{Err: &shieldpool.TransactionError{Kind: "InstructionError", Detail: custom, Custom: shieldpool.CodeSwapNotReady}}
			checkWait(t, w, w.planner.Rejected(w.submission, order.Draft, notReady), ReasonTimeoutNotReached)
			w.now = w.now.Add(test.later)
			order, err = w.next()
			if err != nil || order.Draft == nil || order.Draft.Purpose != test.want {
				t.Errorf("the order is %+v, error %v, want %s", order, err, test.want)
			}
		})
	}
}

// TestNext: the planner's order for each state of the chain.
func TestNext(t *testing.T) {
	t.Parallel()
	type want struct {
		purpose  txmgr.Purpose
		kept     uint64
		phase    submission.Phase
		reason   string
		requests int
	}
	const token = 1 // an account that stays open
	tests := map[string]struct {
		world func(*world)
		want  want
	}{
		"funded, no token accounts": {nil, want{txmgr.PurposeExecute, token, submission.PhaseFunded, "", 1}},
		"the recipient has a token account": {func(w *world) {
			w.putTokenAccount(w.swap.Terms.RecipientATA, w.wallet, w.swap.Terms.OutputMint, 5, false)
		}, want{txmgr.PurposeExecute, 0, submission.PhaseFunded, "", 1}},
		"a stranger's lamports at a token account's address": {func(w *world) {
			w.createTokenAccounts()
			w.chain.accounts[w.swap.Output] = &onchain.Account{Owner: solana.SystemProgramID, Lamports: 1}
		}, want{txmgr.PurposeExecute, 0, submission.PhaseFunded, "", 1}},
		"all token accounts exist": {(*world).createTokenAccounts, want{txmgr.PurposeExecute, 0, submission.PhaseFunded, "", 1}},
		"lamports wrapped by a stranger": {func(w *world) {
			w.createTokenAccounts()
			w.putTokenAccount(w.swap.WSOL, w.swap.State, solana.WrappedSol, testLamports, false)
		}, want{txmgr.PurposeExecute, 0, submission.PhaseFunded, "", 1}},
		"the recipient's account closed in between": {func(w *world) {
			w.createTokenAccounts()
			delete(w.chain.accounts, w.swap.Terms.RecipientATA)
		}, want{txmgr.PurposeExecute, token, submission.PhaseFunded, "", 1}},
		"a frozen recipient": {func(w *world) {
			w.createTokenAccounts()
			w.putTokenAccount(w.swap.Terms.RecipientATA, w.wallet, w.swap.Terms.OutputMint, 0, true)
		}, want{phase: submission.PhaseFunded, reason: ReasonRecipientFrozen}},
		"a recipient's account that was given to another owner": {func(w *world) {
			w.createTokenAccounts()
			w.putTokenAccount(w.swap.Terms.RecipientATA, key(66), w.swap.Terms.OutputMint, 0, false)
		}, want{phase: submission.PhaseFunded, reason: ReasonAccountUnusable}},
		"a token account of Token-2022": {func(w *world) {
			w.createTokenAccounts()
			w.chain.accounts[w.swap.Output].Owner = solana.Token2022ProgramID
		}, want{phase: submission.PhaseFunded, reason: ReasonAccountUnusable}},
		"a frozen token account of the state": {func(w *world) {
			w.createTokenAccounts()
			w.putTokenAccount(w.swap.Output, w.swap.State, w.swap.Terms.OutputMint, 0, true)
		}, want{phase: submission.PhaseFunded, reason: ReasonAccountUnusable}},
		"at a bad price no accounts are created": {func(w *world) { w.router.out = testMinimum - 1 }, want{phase: submission.PhaseFunded, reason: ReasonPrice, requests: 1}},
		"the timeout":                            {func(w *world) { w.createTokenAccounts(); w.chain.slot = testTimeout }, want{txmgr.PurposeRefund, 0, submission.PhaseFunded, "", 0}},
		"the last slots before the timeout":      {func(w *world) { w.createTokenAccounts(); w.chain.slot = testTimeout - testLastSlots }, want{phase: submission.PhaseFunded, reason: ReasonTimeoutNear}},
		"the slot before the last slots":         {func(w *world) { w.createTokenAccounts(); w.chain.slot = testTimeout - testLastSlots - 1 }, want{txmgr.PurposeExecute, 0, submission.PhaseFunded, "", 1}},
		"a timeout on the chain that differs from the recorded one": {func(w *world) {
			w.createTokenAccounts()
			w.putSwapState(func(s *shieldpool.SwapState) { s.TimeoutSlot = testCreated + 10 })
		}, want{txmgr.PurposeRefund, 0, submission.PhaseFunded, "", 0}},
		"a timeout that no swap can have": {func(w *world) {
			w.createTokenAccounts()
			w.putSwapState(func(s *shieldpool.SwapState) { s.TimeoutSlot = 1 << 62 })
		}, want{reason: ReasonStateWrong}},
		"a first leg in a slot that is not reached yet": {func(w *world) {
			w.createTokenAccounts()
			w.putSwapState(func(s *shieldpool.SwapState) { s.CreatedSlot, s.TimeoutSlot = 1<<61, 1<<61+200 })
		}, want{reason: ReasonStateWrong}},
		"a slot past the timeout that only one endpoint reports": {func(w *world) {
			w.createTokenAccounts()
			w.chain.slot, w.chain.uncorroborated = testTimeout, true
		}, want{txmgr.PurposeRefund, 0, submission.PhaseFunded, "", 0}},
		"another minimum than was proved": {func(w *world) {
			w.createTokenAccounts()
			w.putSwapState(func(s *shieldpool.SwapState) { s.MinOutput-- })
		}, want{reason: ReasonStateWrong}},
		"another recipient than was proved, past the timeout": {func(w *world) {
			w.putSwapState(func(s *shieldpool.SwapState) { s.RecipientATA = key(66) })
			w.chain.slot = testTimeout
		}, want{purpose: txmgr.PurposeRefund}},
		"a malformed state": {func(w *world) { w.chain.accounts[w.swap.State].Data = make([]byte, 160) }, want{reason: ReasonStateWrong}},
		"a state of another swap": {func(w *world) {
			w.putSwapState(func(s *shieldpool.SwapState) { s.Nullifier[0]++ })
		}, want{reason: ReasonStateWrong}},
		"no state yet": {func(w *world) { delete(w.chain.accounts, w.swap.State) }, want{reason: ReasonStateMissing}},
		"lamports at the state's address, after the swap's end": {func(w *world) {
			w.chain.accounts[w.swap.State] = &onchain.Account{Owner: solana.SystemProgramID, Lamports: 1}
			w.chain.slot = testTimeout
		}, want{reason: txmgr.HoldHistory}}, // after 200 slots no fork can undo the first leg
		"no recipient in the submission, but a token account": {func(w *world) {
			w.createTokenAccounts()
			w.submission.Call.Recipient = solana.PublicKey{}
		}, want{txmgr.PurposeExecute, 0, submission.PhaseFunded, "", 1}},
		"no recipient, and no account": {func(w *world) { w.submission.Call.Recipient = solana.PublicKey{} }, want{phase: submission.PhaseFunded, reason: ReasonWalletUnknown}},
		"a recipient who does not own the token account": {func(w *world) {
			w.submission.Call.Recipient = solana.MustPublicKeyFromBase58("4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T")
			w.chain.slot = testTimeout
		}, want{phase: submission.PhaseFunded, reason: ReasonWalletUnknown}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.world)
			order, err := w.next()
			var got want
			if test.want.reason != "" {
				checkWait(t, w, err, test.want.reason)
				got.reason = test.want.reason
			} else if err != nil {
				t.Fatal(err)
			}
			got.phase, got.requests = order.Phase, len(w.router.requests)
			if order.Draft != nil {
				got.purpose, got.kept = order.Draft.Purpose, order.Draft.Creates.TokenAccounts
				w.decode(order.Draft)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if w.chain.minContextSlot != testCreated+5 {
				t.Errorf("accounts are read with minContextSlot %d, want %d", w.chain.minContextSlot, testCreated+5)
			}
		})
	}
}

// TestNextRequiresSlotOfFirstLeg: a node that has not reached the slot of the first leg
// would report that there is no swap.
func TestNextRequiresSlotOfFirstLeg(t *testing.T) {
	t.Parallel()
	w := newWorld(t, (*world).createTokenAccounts)
	if _, err := w.planner.Next(t.Context(), w.submission, 0, 3); err != nil {
		t.Fatal(err)
	}
	if w.chain.minContextSlot != testCreated {
		t.Errorf("accounts are read with minContextSlot %d, want %d", w.chain.minContextSlot, testCreated)
	}
}

// TestExecutionCreatesMissingAccounts: the execution creates missing accounts,
// idempotently and with the right owners.
func TestExecutionCreatesMissingAccounts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change      func(*world)
		wantCreated []string
		wantKept    uint64
		wantClosed  uint64
	}{
		"all three": {func(*world) {}, []string{"wsol", "output", "recipient"}, 1, 2},
		"the state's two accounts, which the execution closes": {func(w *world) {
			w.putTokenAccount(w.swap.Terms.RecipientATA, w.wallet, w.swap.Terms.OutputMint, 0, false)
		}, []string{"wsol", "output"}, 0, 2},
		"only the recipient's account": {func(w *world) {
			w.createTokenAccounts()
			delete(w.chain.accounts, w.swap.Terms.RecipientATA)
		}, []string{"recipient"}, 1, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.change)
			order, err := w.next()
			if err != nil {
				t.Fatal(err)
			}
			d := order.Draft
			if d.Purpose != txmgr.PurposeExecute || d.Creates.TokenAccounts != test.wantKept || d.Closes.TokenAccounts != test.wantClosed {
				t.Errorf("draft %s keeps %d new token accounts and closes %d, want execute, %d and %d", d.Purpose, d.Creates.TokenAccounts, d.Closes.TokenAccounts, test.wantKept, test.wantClosed)
			}
			accountNames := map[[3]solana.PublicKey]string{
				{w.swap.WSOL, w.swap.State, solana.WrappedSol}:                 "wsol",
				{w.swap.Output, w.swap.State, w.swap.Terms.OutputMint}:         "output",
				{w.swap.Terms.RecipientATA, w.wallet, w.swap.Terms.OutputMint}: "recipient",
			}
			var created []string
			for _, ix := range w.decode(d) {
				if ix.program == solana.SPLAssociatedTokenAccountProgramID && slices.Equal(ix.data, []byte{1}) && ix.accounts[0].PublicKey == w.payer {
					created = append(created, accountNames[[3]solana.PublicKey{ix.accounts[1].PublicKey, ix.accounts[2].PublicKey, ix.accounts[3].PublicKey}])
				}
			}
			if diff := cmp.Diff(test.wantCreated, created); diff != "" {
				t.Errorf("accounts (-want +got)\n%s", diff)
			}
		})
	}
}

// TestRouteWithoutRoomForAccountsIsRetriedNarrower: only the execution creates accounts,
// because others could collect the rent of accounts created before it.
func TestRouteWithoutRoomForAccountsIsRetriedNarrower(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		padding  func(QuoteRequest) int
		want     txmgr.Purpose
		requests int
	}{
		"a narrower route has enough room": {func(r QuoteRequest) int {
			if r.MaxAccounts == 0 || r.MaxAccounts > 20 {
				return 13
			}
			return 2
		}, txmgr.PurposeExecute, 4},
		"no route has enough room": {func(QuoteRequest) int { return 13 }, "", len(routeWidths())},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(w *world) { w.router.padding = test.padding })
			order, err := w.next()
			if test.want == "" {
				checkWait(t, w, err, ReasonRouteTooLarge)
			} else if err != nil || order.Draft == nil || order.Draft.Purpose != test.want {
				t.Fatalf("draft is %+v, error %v, want a draft to %s", order.Draft, err, test.want)
			}
			if len(w.router.requests) != test.requests {
				t.Errorf("the router received %d quote requests, want %d", len(w.router.requests), test.requests)
			}
		})
	}
}

// TestExecutionDraft: the draft has PrepareSwapSol, and ExecuteSwap with the router's
// instruction. It swaps the state's lamports for the quote's threshold or more, and only the
// payer signs.
func TestExecutionDraft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, (*world).createTokenAccounts)
	order, err := w.next()
	if err != nil {
		t.Fatal(err)
	}
	got := w.decode(order.Draft)
	tags := w.pool.Profile.Tags
	if len(got) != 2 || got[0].program != w.pool.Profile.ProgramID || !slices.Equal(got[0].data, []byte{tags.PrepareSwapSol}) {
		t.Fatalf("instructions are %+v, want PrepareSwapSol first", got)
	}
	execute := got[1]
	at := 1 + 32
	if execute.data[0] != tags.ExecuteSwap || [32]byte(execute.data[1:at]) != w.swap.Nullifier || execute.data[at] != 0xe5 {
		t.Fatalf("data is %x, want tag, nullifier and the router's data", execute.data)
	}
	amount, least := binary.LittleEndian.Uint64(execute.data[at+1:]), binary.LittleEndian.Uint64(execute.data[at+9:])
	if amount != testLamports || least != 2*testMinimum-2*testMinimum*50/wholeBps {
		t.Errorf("router swaps %d for at least %d, want %d and the quote's threshold", amount, least, testLamports)
	}
	var routerAccounts []solana.PublicKey
	for i, a := range execute.accounts {
		if a.IsSigner != (i == 0) {
			t.Errorf("account %d signs: %v, want only the payer to sign", i, a.IsSigner)
		}
		if i >= 8 {
			routerAccounts = append(routerAccounts, a.PublicKey)
		}
	}
	var want []solana.PublicKey
	for _, a := range w.instructions(w.swap.State, new(Quote)).Accounts {
		want = append(want, a.PublicKey)
	}
	if diff := cmp.Diff(want, routerAccounts); diff != "" {
		t.Errorf("router's accounts (-want +got)\n%s", diff)
	}
	if execute.accounts[7].PublicKey != key(7) || execute.accounts[5].PublicKey != w.swap.Terms.RecipientATA {
		t.Error("the router's program or the recipient's account is at the wrong index")
	}
}

// TestRefundDraft: all lamports go to the recipient's wallet, in the form that the state's
// account of wrapped SOL requires.
func TestRefundDraft(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		world       func(*world)
		wantWrapped bool
	}{
		"no token accounts":                  {nil, false},
		"empty token accounts":               {(*world).createTokenAccounts, false},
		"one wrapped lamport of a stranger":  {func(w *world) { w.putTokenAccount(w.swap.WSOL, w.swap.State, solana.WrappedSol, 1, false) }, false},
		"wrapped":                            {func(w *world) { w.putTokenAccount(w.swap.WSOL, w.swap.State, solana.WrappedSol, testLamports, false) }, true},
		"wrapped, with a stranger's lamport": {func(w *world) { w.putTokenAccount(w.swap.WSOL, w.swap.State, solana.WrappedSol, testLamports+1, false) }, true},
		"wrapped, under a malformed state": {func(w *world) {
			w.putTokenAccount(w.swap.WSOL, w.swap.State, solana.WrappedSol, 1, false)
			w.chain.accounts[w.swap.State].Data = nil
		}, true},
		"a router that does not answer": {func(w *world) {
			w.createTokenAccounts()
			w.router.quoteErr = func(QuoteRequest) error { return &RouterUnavailable{Kind: FaultTimeout} }
		}, false},
		"a lookup table that cannot be read": {func(w *world) {
			w.chain.tableErr = errors.New("gone")
			w.ownTable = &shieldpool.LookupTable{Address: key(60), Addresses: solana.PublicKeySlice{w.pool.Address, w.wallet, w.swap.State}}
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(w *world) {
				if test.world != nil {
					test.world(w)
				}
				w.chain.slot = testTimeout
			})
			check := func(wantWrapped bool) *txmgr.Draft {
				t.Helper()
				order, err := w.next()
				if err != nil {
					t.Fatal(err)
				}
				got := w.decode(order.Draft)
				ix, err := w.swap.Close(w.payer, w.wallet, wantWrapped)
				if err != nil {
					t.Fatal(err)
				}
				var want, accounts []solana.PublicKey
				for _, a := range ix.Accounts() {
					want = append(want, a.PublicKey)
				}
				for _, a := range got[0].accounts {
					accounts = append(accounts, a.PublicKey)
				}
				if diff := cmp.Diff(want, accounts); diff != "" || len(got) != 1 || order.Draft.Creates.TokenAccounts != 0 {
					t.Errorf("refund has %d instructions and rent %d, want 1 and 0; accounts (-want +got)\n%s", len(got), order.Draft.Creates.TokenAccounts, diff)
				}
				return order.Draft
			}
			d := check(test.wantWrapped)
			// After each refusal by the program, the refund is tried in the other form.
			refused := &shieldpool.TransactionError{Kind: "InstructionError", Instruction: 2, Detail: "InvalidAccountData"}
			checkWait(t, w, w.planner.Rejected(w.submission, d, &txmgr.Failure{Err: refused}), ReasonRefundFailed)
			d = check(!test.wantWrapped)
			checkWait(t, w, w.planner.Rejected(w.submission, d, &txmgr.Failure{Err: refused}), ReasonRefundFailed)
			check(test.wantWrapped)
		})
	}
}

// TestNothingIsDraftedForEndedSwap: nothing is drafted for a swap whose state is gone, no matter who ended it.
func TestNothingIsDraftedForEndedSwap(t *testing.T) {
	t.Parallel()
	purposes := map[shieldpool.SwapEnding]txmgr.Purpose{shieldpool.Executed: txmgr.PurposeExecute, shieldpool.Refunded: txmgr.PurposeRefund}
	for how, phase := range map[shieldpool.SwapEnding]submission.Phase{shieldpool.Executed: submission.PhaseExecuted, shieldpool.Refunded: submission.PhaseRefunded} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(w *world) {
				delete(w.chain.accounts, w.swap.State)
				w.chain.swapEnd = &onchain.SwapEnd{How: how, Signature: solana.Signature{4}, Slot: 1005, Confirmation: onchain.Confirmed, FeePayer: key(77)}
			})
			order, err := w.next()
			if err != nil {
				t.Fatal(err)
			}
			want := Order{Phase: phase, Timeout: testTimeout, Ended: &txmgr.Landing{Signature: solana.Signature{4}, Slot: 1005, Purpose: purposes[how]}}
			if diff := cmp.Diff(want, order); diff != "" {
				t.Errorf("order (-want +got)\n%s", diff)
			}
		})
	}
	w := newWorld(t, (*world).createTokenAccounts)
	if _, err := w.next(); err != nil || w.chain.searches > 0 {
		t.Errorf("error %v; the history was searched %d times for a swap that has not ended, want 0", err, w.chain.searches)
	}
}

// TestNextReturnsErrorsOfTheChain: a chain that does not answer gives an error, not a deferral.
func TestNextReturnsErrorsOfTheChain(t *testing.T) {
	t.Parallel()
	down := &onchain.Unavailable{Method: "getMultipleAccounts", Kind: onchain.KindTimeout}
	for name, world := range map[string]func(*world){
		"the accounts cannot be read": func(w *world) { w.chain.err = down },
		"the tables cannot be read": func(w *world) {
			w.createTokenAccounts()
			table := key(61)
			w.putTable(table)
			w.router.table, w.chain.tableErr = &table, down
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, world)
			_, err := w.next()
			if wait := (*txmgr.Deferral)(nil); errors.As(err, &wait) || !errors.Is(err, onchain.ErrUnavailable) {
				t.Errorf("error is %v, want the error of the chain", err)
			}
		})
	}
	w := newWorld(t, nil)
	w.submission.Swap = nil
	if _, err := w.next(); err == nil {
		t.Error("a submission without a swap is accepted")
	}
}

// TestNextReturnsCancellationOfTheCaller: a caller that stops waiting gives an error, not a deferral for a
// router that does not answer.
func TestNextReturnsCancellationOfTheCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t, (*world).createTokenAccounts)
	ctx, cancel := context.WithCancel(t.Context())
	w.router.quoteErr = func(QuoteRequest) error {
		cancel()
		return &RouterUnavailable{Kind: FaultCancelled, Err: context.Canceled}
	}
	_, err := w.planner.Next(ctx, w.submission, 0, 0)
	if wait := (*txmgr.Deferral)(nil); errors.As(err, &wait) || !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context.Canceled", err)
	}
}

// TestBuildChecksQuoteAgeAndTimeout: no transaction is built when the quote is too old
// or the timeout too near.
func TestBuildChecksQuoteAgeAndTimeout(t *testing.T) {
	t.Parallel()
	build := func(w *world, d *txmgr.Draft) error {
		_, err := d.Build(w.payer, shieldpool.Compute{}, solana.Hash{1})
		return err
	}
	w := newWorld(t, (*world).createTokenAccounts)
	order, err := w.next()
	if err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(quoteMaxAge)
	if err := build(w, order.Draft); err != nil {
		t.Errorf("building on a quote of age %s failed: %v", quoteMaxAge, err)
	}
	w.now = w.now.Add(time.Millisecond)
	checkWait(t, w, build(w, order.Draft), ReasonQuoteStale)

	w = newWorld(t, func(w *world) { w.createTokenAccounts(); w.chain.slot = testTimeout - testLastSlots - 2 })
	if order, err = w.next(); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(2*testSlot - time.Millisecond)
	if err := build(w, order.Draft); err != nil {
		t.Errorf("building five slots before the timeout failed: %v", err)
	}
	w.now = w.now.Add(time.Millisecond)
	checkWait(t, w, build(w, order.Draft), ReasonTimeoutNear)
}

// TestBuildChecksRouteForNewPayer: a payer that was added after the draft does not sign
// an instruction that names it.
func TestBuildChecksRouteForNewPayer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, (*world).createTokenAccounts)
	order, err := w.next()
	if err != nil {
		t.Fatal(err)
	}
	_, err = order.Draft.Build(key(8, 1), shieldpool.Compute{}, solana.Hash{1})
	checkWait(t, w, err, ReasonRouteRejected)
	if diff := cmp.Diff([]string{RejectedAccount}, w.events.rejected); diff != "" {
		t.Errorf("rejections counted (-want +got)\n%s", diff)
	}
}

func TestNewRejectsInvalidOptions(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Options){
		"no chain":                     func(o *Options) { o.Chain = nil },
		"no router":                    func(o *Options) { o.Router = nil },
		"no pool":                      func(o *Options) { o.Pool = nil },
		"no payers":                    func(o *Options) { o.Payers = nil },
		"no observer":                  func(o *Options) { o.Observer = nil },
		"no log":                       func(o *Options) { o.Log = nil },
		"no clock":                     func(o *Options) { o.Now = nil },
		"no slippage":                  func(o *Options) { o.SlippageBps = 0 },
		"slippage above 100 percent":   func(o *Options) { o.SlippageBps = 10_001 },
		"the pool as router":           func(o *Options) { o.RouterProgram = o.Pool.Profile.ProgramID },
		"the token program as router":  func(o *Options) { o.RouterProgram = solana.TokenProgramID },
		"the system program as router": func(o *Options) { o.RouterProgram = solana.PublicKey{} },
	} {
		o := newWorld(t, nil).options()
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: New returned no error", name)
		}
	}
}
