package app

import (
	"net/http"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/onchain"
)

// makeRoutesInvalid keeps swaps from execution: the router quotes a price, and returns
// no valid route.
func (s *swapFixture) makeRoutesInvalid() {
	s.t.Helper()
	s.setRouter(router.Settings{Lies: []router.LieRule{{Lie: router.WrongProgram}}})
}

// largeRoutes is a router whose routes leave no room for creating all accounts in the
// transaction that executes, and fit without that.
func largeRoutes() router.Settings { return router.Settings{Wide: 21, Outside: true} }

// delayedSend delays the relay's sends by the given time.
func delayedSend(d time.Duration) fault.Rule {
	return fault.Rule{Method: "sendTransaction", Latency: d}
}

// droppedSend drops the relay's sends.
func droppedSend() fault.Rule { return fault.Rule{Method: "sendTransaction", Drop: true} }

// currentSlot returns the chain's slot.
func (s *swapFixture) currentSlot() uint64 {
	s.t.Helper()
	at, err := s.rpc.Slot(s.t.Context(), onchain.Processed)
	must(s.t, err)
	return at
}

// skipTo moves the chain to so many slots after the swap's timeout, unless it is there.
func (w *testSwap) skipTo(afterTimeout uint64) {
	w.t.Helper()
	var timeout float64
	eventually(w.t, "the swap has a timeout", func() bool {
		timeout, _ = w.status().at("data", "swap_timeout_slot").(float64)
		return timeout > 0
	})
	if to, now := uint64(timeout)+afterTimeout, w.currentSlot(); now < to {
		w.chain.Skip(to - now)
	}
}

// executions counts the executions on the chain, except failed ones.
func (w *testSwap) executions() (landed, failed int) {
	w.t.Helper()
	for _, l := range w.history(w.swap.State) {
		for _, tag := range l.tags {
			switch {
			case tag != w.pool.Profile.Tags.ExecuteSwap:
			case l.failed:
				failed++
			default:
				landed++
			}
		}
	}
	return landed, failed
}

// TestAPriceMoveBeforeLandingFailsTheExecution: the execution fails on the chain,
// and a new one is signed when there is a price again.
func TestAPriceMoveBeforeLandingFailsTheExecution(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
	s.makeRoutesInvalid()
	w := s.submitSwap(nil)
	w.waitPhase("funded", "router_hostile")
	s.setFaults(relayEndpoint, delayedSend(700*time.Millisecond))
	s.resetRouter()
	w.waitSigned("execute", 1)
	s.setPrice(50)
	w.waitPhase("funded", "swap_price")
	if landed, failed := w.executions(); landed != 0 || failed != 1 {
		t.Errorf("%d executions landed and %d failed, want one failure", landed, failed)
	}
	s.setFaults(relayEndpoint)
	s.setPrice(100)
	w.waitExecuted()
	if n := w.attempts("execute"); n != 2 {
		t.Errorf("%d executions were signed, want one more than failed", n)
	}
	if n, _ := s.metric(contract.MetricAttempts, `event="failed_on_chain"`); n != 1 {
		t.Errorf("the metric has %v failures on the chain", n)
	}
	s.checkAccounting(notesRent + tokenRent)
}

// closeRecipientAccount closes the wallet's account of the output mint.
func (w *testSwap) closeRecipientAccount() {
	w.t.Helper()
	w.sendAs(w.wallet, token.NewCloseAccountInstruction(w.call.Swap.RecipientATA, w.wallet.PublicKey(), w.wallet.PublicKey(), nil).Build())
	w.lamports = w.lamportsOf(w.wallet.PublicKey())
}

// withFundedWallet funds a wallet and, if asked, makes an empty account of the output mint for it.
func (s *swapFixture) withFundedWallet(account bool) func(*testSwap) {
	return func(w *testSwap) {
		must(s.t, s.chain.Fund(w.wallet.PublicKey(), sol))
		if account {
			_, _, err := s.chain.MintTo(localnet.OutputMint(), w.wallet.PublicKey(), 0)
			must(s.t, err)
			w.omitRecipient = true
		}
		eventually(s.t, "the wallet is funded", func() bool {
			return s.lamportsOf(w.wallet.PublicKey()) > 0 && (!account || s.account(w.call.Swap.RecipientATA) != nil)
		})
	}
}

// TestAClosedRecipientAccountIsCreatedAnew: it is closed at different times.
func TestAClosedRecipientAccountIsCreatedAnew(t *testing.T) {
	t.Parallel()
	t.Run("before there is a price", func(t *testing.T) {
		t.Parallel()
		s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
		s.failRouter(fault.Rule{Status: http.StatusServiceUnavailable})
		w := s.submitSwap(s.withFundedWallet(true))
		w.waitPhase("funded", "router_unavailable")
		w.closeRecipientAccount()
		s.resetRouter()
		w.waitExecuted()
		s.checkAccounting(notesRent + tokenRent)
	})
	t.Run("while the execution is under way", func(t *testing.T) {
		t.Parallel()
		s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
		s.makeRoutesInvalid()
		w := s.submitSwap(s.withFundedWallet(true))
		w.waitPhase("funded", "router_hostile")
		s.setFaults(relayEndpoint, delayedSend(1500*time.Millisecond))
		s.resetRouter()
		w.waitSigned("execute", 1)
		w.closeRecipientAccount()
		s.setFaults(relayEndpoint)
		w.waitExecuted()
		if landed, failed := w.executions(); landed != 1 || failed != 1 {
			t.Errorf("%d executions landed and %d failed, want one each", landed, failed)
		}
		s.checkAccounting(notesRent + tokenRent)
	})
	t.Run("and there is no price any more", func(t *testing.T) {
		t.Parallel()
		s := newSwapFixture(t, fixtureOptions{})
		s.failRouter(fault.Rule{Status: http.StatusServiceUnavailable})
		w := s.submitSwap(s.withFundedWallet(true))
		w.closeRecipientAccount()
		w.waitRefunded(0)
		s.checkAccounting(notesRent + stateRent)
	})
}

// TestAnUnusableRecipientAccountHoldsTheSwap: frozen, and thawed or not; or transferred.
func TestAnUnusableRecipientAccountHoldsTheSwap(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
	s.failRouter(fault.Rule{Status: http.StatusServiceUnavailable})
	thawed, frozen, given, output := s.submitSwap(s.withFundedWallet(true)), s.submitSwap(s.withFundedWallet(true)), s.submitSwap(s.withFundedWallet(true)), s.submitSwap(nil)
	for _, w := range []*testSwap{thawed, frozen} {
		_, err := s.chain.Freeze(localnet.OutputMint(), w.wallet.PublicKey())
		must(t, err)
	}
	s.sendAs(given.wallet, token.NewSetAuthorityInstruction(token.AuthorityAccountOwner, newKey(t).PublicKey(), given.call.Swap.RecipientATA, given.wallet.PublicKey(), nil).Build())
	given.lamports = s.lamportsOf(given.wallet.PublicKey())
	// Anybody can make the state's token account, and the mint's authority freezes it.
	_, _, err := s.chain.MintTo(localnet.OutputMint(), output.swap.State, 0)
	must(t, err)
	_, err = s.chain.Freeze(localnet.OutputMint(), output.swap.State)
	must(t, err)
	s.resetRouter()
	thawed.waitPhase("funded", "swap_recipient_frozen")
	frozen.waitPhase("funded", "swap_recipient_frozen")
	given.waitPhase("funded", "swap_account_unusable")
	output.waitPhase("funded", "swap_account_unusable")
	_, err = s.chain.Thaw(localnet.OutputMint(), thawed.wallet.PublicKey())
	must(t, err)
	thawed.waitExecuted()
	frozen.waitRefunded(0)
	given.waitRefunded(0)
	output.waitRefunded(0)
	s.checkAccounting(notesRent + 3*(notesRent+stateRent))
}

// TestALandedExecutionIsFoundDespiteErrors: the relay finds it, and does not repeat it.
func TestALandedExecutionIsFoundDespiteErrors(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
	const send, statuses = "sendTransaction", "getSignatureStatuses"
	swaps := uint64(0)
	for name, rules := range map[string][]fault.Rule{
		"503":                        {{Method: send, AfterActing: true, Status: http.StatusServiceUnavailable}},
		"429":                        {{Method: send, AfterActing: true, Status: http.StatusTooManyRequests}},
		"an internal error":          {{Method: send, AfterActing: true, Error: fault.Error{Code: -32603, Message: "Internal error"}}},
		"nothing":                    {{Method: send, AfterActing: true, Cut: true}},
		"nothing, and no status too": {{Method: send, AfterActing: true, Hang: true}, {Method: statuses, Status: http.StatusBadGateway}},
		"no status":                  {{Method: statuses, AfterActing: true, Cut: true}},
		"statuses that forget":       {{Method: statuses, Empty: true}},
	} {
		t.Log(name)
		s.makeRoutesInvalid()
		w := s.submitSwap(nil)
		w.waitPhase("funded", "router_hostile")
		s.setFaults(relayEndpoint, rules...)
		s.resetRouter()
		eventually(t, "the execution is on the chain", func() bool { landed, _ := w.executions(); return landed == 1 })
		eventually(t, "the relay is still in the dark, or knows", func() bool { return w.attempts("execute") == 1 })
		s.setFaults(relayEndpoint)
		w.waitExecuted()
		if n := w.attempts("execute"); n != 1 {
			t.Errorf("after %s %d executions were signed", name, n)
		}
		swaps++
		s.waitHealthy()
	}
	s.checkAccounting(swaps * (notesRent + tokenRent))
}

// TestAnExecutionInFlightAtTheTimeout that is signed before the timeout and lands after it, or
// does not land at all.
func TestAnExecutionInFlightAtTheTimeout(t *testing.T) {
	t.Parallel()
	inFlight := func(t *testing.T) (*swapFixture, *testSwap) {
		t.Helper()
		s := newSwapFixture(t, fixtureOptions{slotDuration: forkSlot})
		s.makeRoutesInvalid()
		w := s.submitSwap(nil)
		w.waitPhase("funded", "router_hostile")
		s.setFaults(relayEndpoint, droppedSend())
		s.resetRouter()
		w.waitSigned("execute", 1)
		w.skipTo(2)
		return s, w
	}
	t.Run("it lands after the timeout", func(t *testing.T) {
		t.Parallel()
		s, w := inFlight(t)
		s.setFaults(relayEndpoint)
		w.waitExecuted()
		if e, r := w.attempts("execute"), w.attempts("refund"); e != 1 || r != 0 {
			t.Errorf("%d executions and %d refunds were signed", e, r)
		}
		s.checkAccounting(notesRent + tokenRent)
	})
	t.Run("it never lands", func(t *testing.T) {
		t.Parallel()
		s, w := inFlight(t)
		last := s.queryInt("SELECT last_valid_block_height FROM attempts WHERE purpose = 'execute'")
		s.stop() // the next relay checks existing swaps at once
		s.startRelay()
		s.chain.Advance(blockhashBlocks)
		eventually(t, "the execution is dead", func() bool {
			return s.queryInt("SELECT count(*) FROM attempts WHERE purpose = 'execute' AND dead") == 1
		})
		s.setFaults(relayEndpoint)
		w.waitRefunded(0)
		if n := s.queryInt("SELECT min(last_valid_block_height) FROM attempts WHERE purpose = 'refund'"); n <= last+150 {
			t.Errorf("the refund was signed up to height %d, when the execution could land up to %d", n-150, last)
		}
		if e := w.attempts("execute"); e != 1 {
			t.Errorf("%d executions were signed", e)
		}
		s.checkAccounting(notesRent + stateRent)
	})
	t.Run("another payer's refund is faster", func(t *testing.T) {
		t.Parallel()
		s, w := inFlight(t)
		stranger := s.stranger()
		refund, err := w.swap.Close(stranger.PublicKey(), w.wallet.PublicKey(), false)
		must(t, err)
		s.sendAs(stranger, refund)
		s.setFaults(relayEndpoint)
		w.waitRefunded(0)
		if landed, failed := w.executions(); landed != 0 || failed != 1 {
			t.Errorf("%d executions landed and %d failed, want the one that was in flight to fail", landed, failed)
		}
		if n := w.attempts("refund"); n != 0 {
			t.Errorf("%d refunds were signed for a swap that was over", n)
		}
		s.checkAccounting(notesRent + stateRent)
	})
}

// TestAStrangerMayActOnASwap on a swap of ours: anybody may send all three instructions.
func TestAStrangerMayActOnASwap(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
	stranger := s.stranger()
	s.makeRoutesInvalid()
	wrapped, executed, early := s.submitSwap(nil), s.submitSwap(nil), s.submitSwap(nil)
	stuck := s.submitSwap(func(w *testSwap) { w.call.Swap.MinOutput = 1_000_000 * localnet.OutputUnit }) // above any market
	for _, w := range []*testSwap{wrapped, executed, early} {
		w.waitPhase("funded", "router_hostile")
	}
	stuck.waitPhase("funded", "swap_price")
	for _, w := range []*testSwap{wrapped, stuck} {
		prepare, err := w.swap.Prepare(stranger.PublicKey())
		must(t, err)
		s.sendAs(stranger, append(w.swap.Accounts(stranger.PublicKey(), w.wallet.PublicKey()), prepare)...)
		s.sendAs(stranger, prepare, system.NewTransferInstruction(1, stranger.PublicKey(), w.swap.State).Build()) // and once more
	}
	refund, err := early.swap.Close(stranger.PublicKey(), early.wallet.PublicKey(), false)
	must(t, err)
	if failure := s.sendAndWait(stranger, refund); failure == "" {
		t.Error("a refund before the timeout landed")
	}
	executed.executeAs(stranger)
	status := executed.waitExecuted()
	if status.at("data", "swap_signature") == nil {
		t.Error("a stranger's execution has no signature")
	}
	if n := executed.attempts("execute"); n != 0 {
		t.Errorf("%d executions were signed of a swap that was over", n)
	}
	s.setPrice(50)
	s.resetRouter()
	wrapped.waitPhase("funded", "swap_price")
	s.setPrice(100)
	wrapped.waitExecuted()
	early.waitExecuted()
	stuck.waitPhase("funded", "swap_price")
	// The relay returns the stranger's wrapped lamports, with the rent of the
	// stranger's account and the lamport in the state.
	stuck.waitRefunded(tokenRent + 1)
	// The payer got the rent of the state that it executed. It paid the rent of the accounts
	// that it made for another executed swap, and a lamport.
	s.checkAccounting(4*notesRent+tokenRent+2*stateRent, 1, 2*tokenRent)
}

// executeAs makes a stranger execute the swap; the stranger gets the rents.
func (w *testSwap) executeAs(stranger *feepayer.Key) {
	w.t.Helper()
	at, err := market.For(localnet.OutputMint())
	must(w.t, err)
	trade := at.Swap(market.Trade{User: w.swap.State, WSOL: w.swap.WSOL, Tokens: w.swap.Output, AmountIn: w.net})
	prepare, err := w.swap.Prepare(stranger.PublicKey())
	must(w.t, err)
	execute, err := w.swap.Execute(stranger.PublicKey(), market.ProgramID, trade.AccountValues, trade.DataBytes)
	must(w.t, err)
	w.sendAs(stranger, append(w.swap.Accounts(stranger.PublicKey(), w.wallet.PublicKey()), prepare, execute)...)
}

// TestAStrangerMayRefundASwap a swap that the relay cannot refund, and the wallet gets its
// lamports, wrapped or not.
func TestAStrangerMayRefundASwap(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{})
	stranger := s.stranger()
	s.makeRoutesInvalid()
	plain, wrapped := s.submitSwap(nil), s.submitSwap(nil)
	plain.waitPhase("funded", "router_hostile")
	wrapped.waitPhase("funded", "router_hostile")
	prepare, err := wrapped.swap.Prepare(stranger.PublicKey())
	must(t, err)
	s.sendAs(stranger, append(wrapped.swap.Accounts(stranger.PublicKey(), wrapped.wallet.PublicKey()), prepare)...)
	s.setFaults(relayEndpoint, droppedSend())
	wrapped.skipTo(1)
	for _, w := range []*testSwap{plain, wrapped} {
		refund, err := w.swap.Close(stranger.PublicKey(), w.wallet.PublicKey(), w == wrapped)
		must(t, err)
		s.sendAs(stranger, refund)
	}
	s.setFaults(relayEndpoint)
	plain.waitRefunded(0)
	wrapped.waitRefunded(tokenRent)
	s.checkAccounting(2 * (notesRent + stateRent))
}

// TestDustStopsNothing: lamports and tokens of strangers on every account of a
// swap, before it is made and after.
func TestDustStopsNothing(t *testing.T) {
	t.Parallel()
	// This is enough for an account of the system program to live, but not for a token account.
	const before, after, donated = 890_880, 12_345, 777
	dusty := func(t *testing.T, o fixtureOptions) (*swapFixture, *testSwap) {
		t.Helper()
		s := newSwapFixture(t, o)
		stranger := s.stranger()
		dust := func(lamports uint64, to ...solana.PublicKey) {
			t.Helper()
			var all []solana.Instruction
			for _, key := range to {
				all = append(all, system.NewTransferInstruction(lamports, stranger.PublicKey(), key).Build())
			}
			s.sendAs(stranger, all...)
		}
		s.makeRoutesInvalid()
		w := s.newSwap(nil)
		dust(before, w.swap.State, w.swap.WSOL, w.swap.Output, w.call.Swap.RecipientATA)
		w.submit(s.fixture)
		w.waitPhase("funded", "router_hostile")
		dust(after, w.swap.State)
		_, _, err := s.chain.MintTo(solana.WrappedSol, w.swap.State, after)
		must(t, err)
		_, _, err = s.chain.MintTo(localnet.OutputMint(), w.swap.State, donated)
		must(t, err)
		eventually(t, "the tokens are there", func() bool { return s.tokensOf(w.swap.Output) == donated && s.tokensOf(w.swap.WSOL) == after })
		return s, w
	}
	t.Run("of a swap that is executed", func(t *testing.T) {
		t.Parallel()
		s, w := dusty(t, fixtureOptions{slotDuration: slowSlot})
		want := s.marketOutput(w.net) + donated
		s.resetRouter()
		w.waitExecuted()
		if got := s.tokensOf(w.call.Swap.RecipientATA); got != want {
			t.Errorf("the recipient got %d tokens, want %d with what was donated", got, want)
		}
		// The sender of the tokens made the accounts of the state, so the payer gets their rent.
		s.checkAccounting(notesRent+tokenRent, 2*before+2*after+2*tokenRent)
	})
	t.Run("of a swap that is refunded", func(t *testing.T) {
		t.Parallel()
		s, w := dusty(t, fixtureOptions{})
		w.waitRefunded(after)
		s.checkAccounting(notesRent+stateRent, before)
	})
	t.Run("of a swap that looks wrapped", func(t *testing.T) {
		t.Parallel()
		s, w := dusty(t, fixtureOptions{})
		_, _, err := s.chain.MintTo(solana.WrappedSol, w.swap.State, w.net)
		must(t, err)
		// All of it goes to the wallet, with the account's rent.
		w.waitRefunded(after + after + w.net + tokenRent)
		s.checkAccounting(notesRent+stateRent, before)
	})
}
