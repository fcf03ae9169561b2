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

// makeRoutesInvalid prevents executions: the router quotes a price but returns no valid
// route.
func (s *swapFixture) makeRoutesInvalid() {
	s.t.Helper()
	s.setRouter(router.Settings{Lies: []router.LieRule{{Lie: router.WrongProgram}}})
}

// largeRoutes makes a router return routes that fit the execution's transaction, but leave
// no room in it for creating all accounts.
func largeRoutes() router.Settings { return router.Settings{Wide: 21, Outside: true} }

// delayedSend delays the relay's sends by the given time.
func delayedSend(d time.Duration) fault.Rule {
	return fault.Rule{Method: "sendTransaction", Latency: d}
}

// droppedSend drops the relay's sends.
func droppedSend() fault.Rule { return fault.Rule{Method: "sendTransaction", Drop: true} }

// currentSlot returns the chain's processed slot.
func (s *swapFixture) currentSlot() uint64 {
	s.t.Helper()
	at, err := s.rpc.Slot(s.t.Context(), onchain.Processed)
	must(s.t, err)
	return at
}

// skipTo skips slots up to the given number of slots after the swap's timeout, unless the
// chain is there already.
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

// executions counts the swap's executions on the chain: the successful and the failed ones.
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

// The price falls before the execution lands, so the execution fails on the chain. A new
// one is signed when the price is sufficient again.
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
		t.Errorf("%d executions landed and %d failed, want 0 and 1", landed, failed)
	}
	s.setFaults(relayEndpoint)
	s.setPrice(100)
	w.waitExecuted()
	if n := w.attempts("execute"); n != 2 {
		t.Errorf("%d executions were signed, want 2", n)
	}
	if n, _ := s.metric(contract.MetricAttempts, `event="failed_on_chain"`); n != 1 {
		t.Errorf("the metric has %v failures on the chain, want 1", n)
	}
	s.checkAccounting(notesRent + tokenRent)
}

// closeRecipientAccount closes the wallet's token account of the output mint.
func (w *testSwap) closeRecipientAccount() {
	w.t.Helper()
	w.sendAs(w.wallet, token.NewCloseAccountInstruction(w.call.Swap.RecipientATA, w.wallet.PublicKey(), w.wallet.PublicKey(), nil).Build())
	w.lamports = w.lamportsOf(w.wallet.PublicKey())
}

// withFundedWallet funds a wallet and, if account is set, creates an empty token account of the
// output mint for it.
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

// The recipient's token account is closed at different times.
func TestAClosedRecipientAccountIsCreatedAnew(t *testing.T) {
	t.Parallel()
	t.Run("closed before a quote", func(t *testing.T) {
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
	t.Run("closed while the execution is under way", func(t *testing.T) {
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
			t.Errorf("%d executions landed and %d failed, want 1 and 1", landed, failed)
		}
		s.checkAccounting(notesRent + tokenRent)
	})
	t.Run("closed before a refund", func(t *testing.T) {
		t.Parallel()
		s := newSwapFixture(t, fixtureOptions{})
		s.failRouter(fault.Rule{Status: http.StatusServiceUnavailable})
		w := s.submitSwap(s.withFundedWallet(true))
		w.closeRecipientAccount()
		w.waitRefunded(0)
		s.checkAccounting(notesRent + stateRent)
	})
}

// An account is unusable if it is frozen or belongs to another owner.
func TestAnUnusableRecipientAccountHoldsTheSwap(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
	s.failRouter(fault.Rule{Status: http.StatusServiceUnavailable})
	thawed, frozen, transferred, stateFrozen := s.submitSwap(s.withFundedWallet(true)), s.submitSwap(s.withFundedWallet(true)), s.submitSwap(s.withFundedWallet(true)), s.submitSwap(nil)
	for _, w := range []*testSwap{thawed, frozen} {
		_, err := s.chain.Freeze(localnet.OutputMint(), w.wallet.PublicKey())
		must(t, err)
	}
	s.sendAs(transferred.wallet, token.NewSetAuthorityInstruction(token.AuthorityAccountOwner, newKey(t).PublicKey(), transferred.call.Swap.RecipientATA, transferred.wallet.PublicKey(), nil).Build())
	transferred.lamports = s.lamportsOf(transferred.wallet.PublicKey())
	// Anybody can create the state's token account, and the mint's authority can freeze it.
	_, _, err := s.chain.MintTo(localnet.OutputMint(), stateFrozen.swap.State, 0)
	must(t, err)
	_, err = s.chain.Freeze(localnet.OutputMint(), stateFrozen.swap.State)
	must(t, err)
	s.resetRouter()
	thawed.waitPhase("funded", "swap_recipient_frozen")
	frozen.waitPhase("funded", "swap_recipient_frozen")
	transferred.waitPhase("funded", "swap_account_unusable")
	stateFrozen.waitPhase("funded", "swap_account_unusable")
	_, err = s.chain.Thaw(localnet.OutputMint(), thawed.wallet.PublicKey())
	must(t, err)
	thawed.waitExecuted()
	frozen.waitRefunded(0)
	transferred.waitRefunded(0)
	stateFrozen.waitRefunded(0)
	s.checkAccounting(notesRent + 3*(notesRent+stateRent))
}

// The execution lands although its send or its status fails. The relay finds the landed
// execution and signs no other.
func TestALandedExecutionIsFoundDespiteErrors(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
	const send, statuses = "sendTransaction", "getSignatureStatuses"
	swaps := uint64(0)
	for name, rules := range map[string][]fault.Rule{
		"send returns 503":          {{Method: send, AfterActing: true, Status: http.StatusServiceUnavailable}},
		"send returns 429":          {{Method: send, AfterActing: true, Status: http.StatusTooManyRequests}},
		"send returns an RPC error": {{Method: send, AfterActing: true, Error: fault.Error{Code: -32603, Message: "Internal error"}}},
		"send is cut off":           {{Method: send, AfterActing: true, Cut: true}},
		"send hangs, status fails":  {{Method: send, AfterActing: true, Hang: true}, {Method: statuses, Status: http.StatusBadGateway}},
		"status is cut off":         {{Method: statuses, AfterActing: true, Cut: true}},
		"status is empty":           {{Method: statuses, Empty: true}},
	} {
		t.Log(name)
		s.makeRoutesInvalid()
		w := s.submitSwap(nil)
		w.waitPhase("funded", "router_hostile")
		s.setFaults(relayEndpoint, rules...)
		s.resetRouter()
		eventually(t, "the execution is on the chain", func() bool { landed, _ := w.executions(); return landed == 1 })
		eventually(t, "the attempt is stored", func() bool { return w.attempts("execute") == 1 })
		s.setFaults(relayEndpoint)
		w.waitExecuted()
		if n := w.attempts("execute"); n != 1 {
			t.Errorf("%s: %d executions were signed, want 1", name, n)
		}
		swaps++
		s.waitHealthy()
	}
	s.checkAccounting(swaps * (notesRent + tokenRent))
}

// The execution is signed before the timeout. It lands after the timeout, or not at all.
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
	t.Run("lands after the timeout", func(t *testing.T) {
		t.Parallel()
		s, w := inFlight(t)
		s.setFaults(relayEndpoint)
		w.waitExecuted()
		if e, r := w.attempts("execute"), w.attempts("refund"); e != 1 || r != 0 {
			t.Errorf("%d executions and %d refunds were signed, want 1 and 0", e, r)
		}
		s.checkAccounting(notesRent + tokenRent)
	})
	t.Run("never lands", func(t *testing.T) {
		t.Parallel()
		s, w := inFlight(t)
		last := s.queryInt("SELECT last_valid_block_height FROM attempts WHERE purpose = 'execute'")
		s.stop() // a new relay checks existing swaps immediately
		s.startRelay()
		s.chain.Advance(blockhashBlocks)
		eventually(t, "the execution is dead", func() bool {
			return s.queryInt("SELECT count(*) FROM attempts WHERE purpose = 'execute' AND dead") == 1
		})
		s.setFaults(relayEndpoint)
		w.waitRefunded(0)
		if n := s.queryInt("SELECT min(last_valid_block_height) FROM attempts WHERE purpose = 'refund'"); n <= last+150 {
			t.Errorf("the refund was signed at height %d, want it above %d, up to which the execution could land", n-150, last)
		}
		if e := w.attempts("execute"); e != 1 {
			t.Errorf("%d executions were signed, want 1", e)
		}
		s.checkAccounting(notesRent + stateRent)
	})
	t.Run("a stranger's refund lands first", func(t *testing.T) {
		t.Parallel()
		s, w := inFlight(t)
		stranger := s.stranger()
		refund, err := w.swap.Close(stranger.PublicKey(), w.wallet.PublicKey(), false)
		must(t, err)
		s.sendAs(stranger, refund)
		s.setFaults(relayEndpoint)
		w.waitRefunded(0)
		if landed, failed := w.executions(); landed != 0 || failed != 1 {
			t.Errorf("%d executions landed and %d failed, want 0 and 1", landed, failed)
		}
		if n := w.attempts("refund"); n != 0 {
			t.Errorf("%d refunds were signed for a swap that a stranger refunded, want 0", n)
		}
		s.checkAccounting(notesRent + stateRent)
	})
}

// Anybody may send the instructions to prepare, execute and close a swap of the relay.
func TestAStrangerMayActOnASwap(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
	stranger := s.stranger()
	s.makeRoutesInvalid()
	wrapped, executed, early := s.submitSwap(nil), s.submitSwap(nil), s.submitSwap(nil)
	unpriced := s.submitSwap(func(w *testSwap) { w.call.Swap.MinOutput = 1_000_000 * localnet.OutputUnit }) // above any market
	for _, w := range []*testSwap{wrapped, executed, early} {
		w.waitPhase("funded", "router_hostile")
	}
	unpriced.waitPhase("funded", "swap_price")
	for _, w := range []*testSwap{wrapped, unpriced} {
		prepare, err := w.swap.Prepare(stranger.PublicKey())
		must(t, err)
		s.sendAs(stranger, append(w.swap.CreateAccounts(stranger.PublicKey(), w.wallet.PublicKey()), prepare)...)
		s.sendAs(stranger, prepare, system.NewTransferInstruction(1, stranger.PublicKey(), w.swap.State).Build()) // and a second time
	}
	refund, err := early.swap.Close(stranger.PublicKey(), early.wallet.PublicKey(), false)
	must(t, err)
	if failure := s.sendAndWait(stranger, refund); failure == "" {
		t.Error("a refund before the timeout succeeded, want it to fail")
	}
	executed.executeAs(stranger)
	status := executed.waitExecuted()
	if status.at("data", "swap_signature") == nil {
		t.Error("the status of a swap that a stranger executed has no swap_signature")
	}
	if n := executed.attempts("execute"); n != 0 {
		t.Errorf("the relay signed %d executions of a swap that a stranger executed, want 0", n)
	}
	s.setPrice(50)
	s.resetRouter()
	wrapped.waitPhase("funded", "swap_price")
	s.setPrice(100)
	wrapped.waitExecuted()
	early.waitExecuted()
	unpriced.waitPhase("funded", "swap_price")
	// The refund includes the rent of the account that the stranger created, and the lamport
	// that the stranger sent to the state.
	unpriced.waitRefunded(tokenRent + 1)
	// Two states' rents went to others. The payers received a lamport and the rents of two
	// accounts that the stranger had created.
	s.checkAccounting(4*notesRent+tokenRent+2*stateRent, 1, 2*tokenRent)
}

// executeAs executes the swap as a stranger, who gets the rents.
func (w *testSwap) executeAs(stranger *feepayer.Key) {
	w.t.Helper()
	at, err := market.For(localnet.OutputMint())
	must(w.t, err)
	trade := at.Swap(market.Trade{User: w.swap.State, WSOL: w.swap.WSOL, Tokens: w.swap.Output, AmountIn: w.net})
	prepare, err := w.swap.Prepare(stranger.PublicKey())
	must(w.t, err)
	execute, err := w.swap.Execute(stranger.PublicKey(), market.ProgramID, trade.AccountValues, trade.DataBytes)
	must(w.t, err)
	w.sendAs(stranger, append(w.swap.CreateAccounts(stranger.PublicKey(), w.wallet.PublicKey()), prepare, execute)...)
}

// A stranger refunds swaps that the relay cannot refund. The wallet gets its lamports,
// whether they were wrapped or not.
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
	s.sendAs(stranger, append(wrapped.swap.CreateAccounts(stranger.PublicKey(), wrapped.wallet.PublicKey()), prepare)...)
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

// A stranger sends lamports and tokens to every account of a swap, before and after its
// first leg.
func TestDonationsToItsAccountsDoNotStopASwap(t *testing.T) {
	t.Parallel()
	// before is rent-exempt for an account of the system program, but not for a token account.
	const before, after, donated = 650_240, 12_345, 777
	swapWithDonations := func(t *testing.T, o fixtureOptions) (*swapFixture, *testSwap) {
		t.Helper()
		s := newSwapFixture(t, o)
		stranger := s.stranger()
		donate := func(lamports uint64, to ...solana.PublicKey) {
			t.Helper()
			var all []solana.Instruction
			for _, key := range to {
				all = append(all, system.NewTransferInstruction(lamports, stranger.PublicKey(), key).Build())
			}
			s.sendAs(stranger, all...)
		}
		s.makeRoutesInvalid()
		w := s.newSwap(nil)
		donate(before, w.swap.State, w.swap.WSOL, w.swap.Output, w.call.Swap.RecipientATA)
		w.submit(s.fixture)
		w.waitPhase("funded", "router_hostile")
		donate(after, w.swap.State)
		_, _, err := s.chain.MintTo(solana.WrappedSol, w.swap.State, after)
		must(t, err)
		_, _, err = s.chain.MintTo(localnet.OutputMint(), w.swap.State, donated)
		must(t, err)
		eventually(t, "the tokens are there", func() bool { return s.tokensOf(w.swap.Output) == donated && s.tokensOf(w.swap.WSOL) == after })
		return s, w
	}
	t.Run("executed", func(t *testing.T) {
		t.Parallel()
		s, w := swapWithDonations(t, fixtureOptions{slotDuration: slowSlot})
		want := s.marketOutput(w.net) + donated
		s.resetRouter()
		w.waitExecuted()
		if got := s.tokensOf(w.call.Swap.RecipientATA); got != want {
			t.Errorf("the recipient got %d tokens, want %d with the donation", got, want)
		}
		// The donor created the state's token accounts, and the payer gets their rents.
		s.checkAccounting(notesRent+tokenRent, 2*before+2*after+2*tokenRent)
	})
	t.Run("refunded", func(t *testing.T) {
		t.Parallel()
		s, w := swapWithDonations(t, fixtureOptions{})
		w.waitRefunded(after)
		s.checkAccounting(notesRent+stateRent, before)
	})
	t.Run("refunded with a full WSOL account", func(t *testing.T) {
		t.Parallel()
		s, w := swapWithDonations(t, fixtureOptions{})
		_, _, err := s.chain.MintTo(solana.WrappedSol, w.swap.State, w.net)
		must(t, err)
		// The wallet gets all wrapped lamports, and the WSOL account's rent.
		w.waitRefunded(after + after + w.net + tokenRent)
		s.checkAccounting(notesRent+stateRent, before)
	})
}
