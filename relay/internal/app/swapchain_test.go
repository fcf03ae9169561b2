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

// holdBefore keeps swaps from execution: the router quotes a price, and returns
// no valid route.
func (s *swapStand) holdBefore() {
	s.t.Helper()
	s.behave(router.Settings{Lies: []router.LieRule{{Lie: router.WrongProgram}}})
}

// crowded is a router whose routes leave no room for creating all accounts in the
// transaction that executes, and fit without that.
func crowded() router.Settings { return router.Settings{Wide: 21, Outside: true} }

// late delays the relay's sends by the given time.
func late(d time.Duration) fault.Rule { return fault.Rule{Method: "sendTransaction", Latency: d} }

// dropped drops the relay's sends.
func dropped() fault.Rule { return fault.Rule{Method: "sendTransaction", Drop: true} }

// slotNow returns the chain's slot.
func (s *swapStand) slotNow() uint64 {
	s.t.Helper()
	at, err := s.rpc.Slot(s.t.Context(), onchain.Processed)
	must(s.t, err)
	return at
}

// skipTo moves the chain to so many slots after the swap's timeout, unless it is there.
func (w *swapping) skipTo(afterTimeout uint64) {
	w.t.Helper()
	var timeout float64
	eventually(w.t, "the swap has a timeout", func() bool {
		timeout, _ = w.status().at("data", "swap_timeout_slot").(float64)
		return timeout > 0
	})
	if to, now := uint64(timeout)+afterTimeout, w.slotNow(); now < to {
		w.chain.Skip(to - now)
	}
}

// executions counts the executions on the chain, except failed ones.
func (w *swapping) executions() (landed, failed int) {
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

// TestThePriceMovesBetweenSimulationAndLanding: the execution fails on the chain,
// and a new one is signed when there is a price again.
func TestThePriceMovesBetweenSimulationAndLanding(t *testing.T) {
	t.Parallel()
	s := newSwapStand(t, standOptions{slot: slow})
	s.holdBefore()
	w := s.begin(nil)
	w.shows("funded", "router_hostile")
	s.faults(oneEndpoint, late(700*time.Millisecond))
	s.honest()
	w.signed("execute", 1)
	s.price(50)
	w.shows("funded", "swap_price")
	if landed, failed := w.executions(); landed != 0 || failed != 1 {
		t.Errorf("%d executions landed and %d failed, want one failure", landed, failed)
	}
	s.faults(oneEndpoint)
	s.price(100)
	w.executed()
	if n := w.attempts("execute"); n != 2 {
		t.Errorf("%d executions were signed, want one more than failed", n)
	}
	if n, _ := s.metric(contract.MetricAttempts, `event="failed_on_chain"`); n != 1 {
		t.Errorf("the metric has %v failures on the chain", n)
	}
	s.books(notesRent + tokenRent)
}

// closing closes the wallet's account of the output mint.
func (w *swapping) closing() {
	w.t.Helper()
	w.sendAs(w.wallet, token.NewCloseAccountInstruction(w.call.Swap.RecipientATA, w.wallet.PublicKey(), w.wallet.PublicKey(), nil).Build())
	w.lamports = w.lamportsOf(w.wallet.PublicKey())
}

// owned funds a wallet and, if asked, makes an empty account of the output mint for it.
func (s *swapStand) owned(account bool) func(*swapping) {
	return func(w *swapping) {
		must(s.t, s.chain.Fund(w.wallet.PublicKey(), sol))
		if account {
			_, _, err := s.chain.MintTo(localnet.OutputMint(), w.wallet.PublicKey(), 0)
			must(s.t, err)
			w.unnamed = true
		}
		eventually(s.t, "the wallet is funded", func() bool {
			return s.lamportsOf(w.wallet.PublicKey()) > 0 && (!account || s.account(w.call.Swap.RecipientATA) != nil)
		})
	}
}

// TestTheRecipientsAccountIsClosedInBetween: it is closed at different times.
func TestTheRecipientsAccountIsClosedInBetween(t *testing.T) {
	t.Parallel()
	t.Run("before there is a price", func(t *testing.T) {
		t.Parallel()
		s := newSwapStand(t, standOptions{slot: slow})
		s.down(fault.Rule{Status: http.StatusServiceUnavailable})
		w := s.begin(s.owned(true))
		w.shows("funded", "router_unavailable")
		w.closing()
		s.honest()
		w.executed()
		s.books(notesRent + tokenRent)
	})
	t.Run("while the execution is under way", func(t *testing.T) {
		t.Parallel()
		s := newSwapStand(t, standOptions{slot: slow})
		s.holdBefore()
		w := s.begin(s.owned(true))
		w.shows("funded", "router_hostile")
		s.faults(oneEndpoint, late(1500*time.Millisecond))
		s.honest()
		w.signed("execute", 1)
		w.closing()
		s.faults(oneEndpoint)
		w.executed()
		if landed, failed := w.executions(); landed != 1 || failed != 1 {
			t.Errorf("%d executions landed and %d failed, want one each", landed, failed)
		}
		s.books(notesRent + tokenRent)
	})
	t.Run("and there is no price any more", func(t *testing.T) {
		t.Parallel()
		s := newSwapStand(t, standOptions{})
		s.down(fault.Rule{Status: http.StatusServiceUnavailable})
		w := s.begin(s.owned(true))
		w.closing()
		w.refunded(0)
		s.books(notesRent + stateRent)
	})
}

// TestTheRecipientsAccountBecomesUnfit: frozen, and thawed or not; or transferred.
func TestTheRecipientsAccountBecomesUnfit(t *testing.T) {
	t.Parallel()
	s := newSwapStand(t, standOptions{slot: slow})
	s.down(fault.Rule{Status: http.StatusServiceUnavailable})
	thawed, frozen, given, output := s.begin(s.owned(true)), s.begin(s.owned(true)), s.begin(s.owned(true)), s.begin(nil)
	for _, w := range []*swapping{thawed, frozen} {
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
	s.honest()
	thawed.shows("funded", "swap_recipient_frozen")
	frozen.shows("funded", "swap_recipient_frozen")
	given.shows("funded", "swap_account_unusable")
	output.shows("funded", "swap_account_unusable")
	_, err = s.chain.Thaw(localnet.OutputMint(), thawed.wallet.PublicKey())
	must(t, err)
	thawed.executed()
	frozen.refunded(0)
	given.refunded(0)
	output.refunded(0)
	s.books(notesRent + 3*(notesRent+stateRent))
}

// TestAnExecutionLandsAndIsAnsweredWithAnError: the relay finds it, and does not repeat it.
func TestAnExecutionLandsAndIsAnsweredWithAnError(t *testing.T) {
	t.Parallel()
	s := newSwapStand(t, standOptions{slot: slow})
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
		s.holdBefore()
		w := s.begin(nil)
		w.shows("funded", "router_hostile")
		s.faults(oneEndpoint, rules...)
		s.honest()
		eventually(t, "the execution is on the chain", func() bool { landed, _ := w.executions(); return landed == 1 })
		eventually(t, "the relay is still in the dark, or knows", func() bool { return w.attempts("execute") == 1 })
		s.faults(oneEndpoint)
		w.executed()
		if n := w.attempts("execute"); n != 1 {
			t.Errorf("after %s %d executions were signed", name, n)
		}
		swaps++
		s.ready()
	}
	s.books(swaps * (notesRent + tokenRent))
}

// TestTheTimeoutRacesAnExecution that is signed before the timeout and lands after it, or
// does not land at all.
func TestTheTimeoutRacesAnExecution(t *testing.T) {
	t.Parallel()
	inFlight := func(t *testing.T) (*swapStand, *swapping) {
		t.Helper()
		s := newSwapStand(t, standOptions{slot: forking})
		s.holdBefore()
		w := s.begin(nil)
		w.shows("funded", "router_hostile")
		s.faults(oneEndpoint, dropped())
		s.honest()
		w.signed("execute", 1)
		w.skipTo(2)
		return s, w
	}
	t.Run("it lands after the timeout", func(t *testing.T) {
		t.Parallel()
		s, w := inFlight(t)
		s.faults(oneEndpoint)
		w.executed()
		if e, r := w.attempts("execute"), w.attempts("refund"); e != 1 || r != 0 {
			t.Errorf("%d executions and %d refunds were signed", e, r)
		}
		s.books(notesRent + tokenRent)
	})
	t.Run("it never lands", func(t *testing.T) {
		t.Parallel()
		s, w := inFlight(t)
		last := s.count("SELECT last_valid_block_height FROM attempts WHERE purpose = 'execute'")
		s.stop() // the next relay checks existing swaps at once
		s.again()
		s.chain.Advance(blockhashLife)
		eventually(t, "the execution is dead", func() bool {
			return s.count("SELECT count(*) FROM attempts WHERE purpose = 'execute' AND dead") == 1
		})
		s.faults(oneEndpoint)
		w.refunded(0)
		if n := s.count("SELECT min(last_valid_block_height) FROM attempts WHERE purpose = 'refund'"); n <= last+150 {
			t.Errorf("the refund was signed up to height %d, when the execution could land up to %d", n-150, last)
		}
		if e := w.attempts("execute"); e != 1 {
			t.Errorf("%d executions were signed", e)
		}
		s.books(notesRent + stateRent)
	})
	t.Run("another payer's refund is faster", func(t *testing.T) {
		t.Parallel()
		s, w := inFlight(t)
		stranger := s.stranger()
		refund, err := w.swap.Close(stranger.PublicKey(), w.wallet.PublicKey(), false)
		must(t, err)
		s.sendAs(stranger, refund)
		s.faults(oneEndpoint)
		w.refunded(0)
		if landed, failed := w.executions(); landed != 0 || failed != 1 {
			t.Errorf("%d executions landed and %d failed, want the one that was in flight to fail", landed, failed)
		}
		if n := w.attempts("refund"); n != 0 {
			t.Errorf("%d refunds were signed for a swap that was over", n)
		}
		s.books(notesRent + stateRent)
	})
}

// TestAStrangerActs on a swap of ours: anybody may send all three instructions.
func TestAStrangerActs(t *testing.T) {
	t.Parallel()
	s := newSwapStand(t, standOptions{slot: slow})
	stranger := s.stranger()
	s.holdBefore()
	wrapped, executed, early := s.begin(nil), s.begin(nil), s.begin(nil)
	stuck := s.begin(func(w *swapping) { w.call.Swap.MinOutput = 1_000_000 * localnet.OutputUnit }) // above any market
	for _, w := range []*swapping{wrapped, executed, early} {
		w.shows("funded", "router_hostile")
	}
	stuck.shows("funded", "swap_price")
	for _, w := range []*swapping{wrapped, stuck} {
		prepare, err := w.swap.Prepare(stranger.PublicKey())
		must(t, err)
		s.sendAs(stranger, append(w.swap.Accounts(stranger.PublicKey(), w.wallet.PublicKey()), prepare)...)
		s.sendAs(stranger, prepare, system.NewTransferInstruction(1, stranger.PublicKey(), w.swap.State).Build()) // and once more
	}
	refund, err := early.swap.Close(stranger.PublicKey(), early.wallet.PublicKey(), false)
	must(t, err)
	if failure := s.try(stranger, refund); failure == "" {
		t.Error("a refund before the timeout landed")
	}
	executed.executeAs(stranger)
	status := executed.executed()
	if status.at("data", "swap_signature") == nil {
		t.Error("a stranger's execution has no signature")
	}
	if n := executed.attempts("execute"); n != 0 {
		t.Errorf("%d executions were signed of a swap that was over", n)
	}
	s.price(50)
	s.honest()
	wrapped.shows("funded", "swap_price")
	s.price(100)
	wrapped.executed()
	early.executed()
	stuck.shows("funded", "swap_price")
	// The relay returns the stranger's wrapped lamports, with the rent of the
	// stranger's account and the lamport in the state.
	stuck.refunded(tokenRent + 1)
	// The payer got the rent of the state that it executed. It paid the rent of the accounts
	// that it made for another executed swap, and a lamport.
	s.books(4*notesRent+tokenRent+2*stateRent, 1, 2*tokenRent)
}

// executeAs makes a stranger execute the swap; the stranger gets the rents.
func (w *swapping) executeAs(stranger *feepayer.Key) {
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

// TestAStrangerRefunds a swap that the relay cannot refund, and the wallet gets its
// lamports, wrapped or not.
func TestAStrangerRefunds(t *testing.T) {
	t.Parallel()
	s := newSwapStand(t, standOptions{})
	stranger := s.stranger()
	s.holdBefore()
	plain, wrapped := s.begin(nil), s.begin(nil)
	plain.shows("funded", "router_hostile")
	wrapped.shows("funded", "router_hostile")
	prepare, err := wrapped.swap.Prepare(stranger.PublicKey())
	must(t, err)
	s.sendAs(stranger, append(wrapped.swap.Accounts(stranger.PublicKey(), wrapped.wallet.PublicKey()), prepare)...)
	s.faults(oneEndpoint, dropped())
	wrapped.skipTo(1)
	for _, w := range []*swapping{plain, wrapped} {
		refund, err := w.swap.Close(stranger.PublicKey(), w.wallet.PublicKey(), w == wrapped)
		must(t, err)
		s.sendAs(stranger, refund)
	}
	s.faults(oneEndpoint)
	plain.refunded(0)
	wrapped.refunded(tokenRent)
	s.books(2 * (notesRent + stateRent))
}

// TestDustStopsNothing: lamports and tokens of strangers on every account of a
// swap, before it is made and after.
func TestDustStopsNothing(t *testing.T) {
	t.Parallel()
	// This is enough for an account of the system program to live, but not for a token account.
	const before, after, donated = 890_880, 12_345, 777
	dusty := func(t *testing.T, o standOptions) (*swapStand, *swapping) {
		t.Helper()
		s := newSwapStand(t, o)
		stranger := s.stranger()
		dust := func(lamports uint64, to ...solana.PublicKey) {
			t.Helper()
			var all []solana.Instruction
			for _, key := range to {
				all = append(all, system.NewTransferInstruction(lamports, stranger.PublicKey(), key).Build())
			}
			s.sendAs(stranger, all...)
		}
		s.holdBefore()
		w := s.newSwap(nil)
		dust(before, w.swap.State, w.swap.WSOL, w.swap.Output, w.call.Swap.RecipientATA)
		w.post(s.stand)
		w.shows("funded", "router_hostile")
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
		s, w := dusty(t, standOptions{slot: slow})
		want := s.gives(w.net) + donated
		s.honest()
		w.executed()
		if got := s.tokensOf(w.call.Swap.RecipientATA); got != want {
			t.Errorf("the recipient got %d tokens, want %d with what was donated", got, want)
		}
		// The sender of the tokens made the accounts of the state, so the payer gets their rent.
		s.books(notesRent+tokenRent, 2*before+2*after+2*tokenRent)
	})
	t.Run("of a swap that is refunded", func(t *testing.T) {
		t.Parallel()
		s, w := dusty(t, standOptions{})
		w.refunded(after)
		s.books(notesRent+stateRent, before)
	})
	t.Run("of a swap that looks wrapped", func(t *testing.T) {
		t.Parallel()
		s, w := dusty(t, standOptions{})
		_, _, err := s.chain.MintTo(solana.WrappedSol, w.swap.State, w.net)
		must(t, err)
		// All of it goes to the wallet, with the account's rent.
		w.refunded(after + after + w.net + tokenRent)
		s.books(notesRent+stateRent, before)
	})
}
