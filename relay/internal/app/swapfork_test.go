package app

import (
	"net/http"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// landingSlot is the slot of a signature that the chain has.
func (s *swapFixture) landingSlot(signature any) uint64 {
	s.t.Helper()
	text, _ := signature.(string)
	sig, err := solana.SignatureFromBase58(text)
	must(s.t, err)
	st, _, err := s.rpc.Statuses(s.t.Context(), []solana.Signature{sig}, true)
	must(s.t, err)
	if st[0] == nil {
		s.t.Fatal("the chain does not know the transaction")
	}
	return st[0].Slot
}

// fork abandons the chain's slots from the given one on, and returns the undone transactions.
// Those that landAgain selects land on the new fork.
func (s *swapFixture) fork(from uint64, landAgain func(*bank.Landed) bool) []bank.Undone {
	s.t.Helper()
	undone, err := s.chain.ForkFrom(from, landAgain)
	must(s.t, err)
	return undone
}

func (s *swapFixture) waitReopened(atLeast float64) {
	s.t.Helper()
	eventually(s.t, "the relay has reopened the undone submissions", func() bool {
		n, _ := s.metric(contract.MetricAttempts, `event="reopened"`)
		return n >= atLeast
	})
}

// After the second leg was created, a fork undoes the first leg. The second leg waits until
// the first leg has landed again, and the swap continues.
func TestAForkRollsBackTheFirstLeg(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: forkSlot})
	s.failRouter(fault.Rule{Status: http.StatusServiceUnavailable})
	w := s.submitSwap(nil)
	w.waitPhase("funded", "router_unavailable")
	s.setFaults(relayEndpoint, droppedSend())
	s.fork(s.landingSlot(w.firstSignature), nil)
	s.waitReopened(1)
	eventually(t, "the first leg is under way again", func() bool {
		a := w.status()
		return a.at("data", "status") == "processing" && a.at("data", "swap_phase") == nil && a.at("data", "solana_signature") == nil
	})
	s.resetRouter()
	eventually(t, "the second leg waits for the swap's state", func() bool {
		return s.queryInt("SELECT count(*) FROM submissions WHERE parent IS NOT NULL AND hold_reason = 'swap_state_missing'") == 1
	})
	if n := w.attempts("execute") + w.attempts("refund"); n != 0 {
		t.Errorf("%d transactions were signed for a swap without state, want 0", n)
	}
	s.setFaults(relayEndpoint)
	w.waitExecuted()
	if n := s.queryInt("SELECT count(*) FROM submissions"); n != 2 {
		t.Errorf("%d submissions are stored for the two legs of one swap, want 2", n)
	}
	s.checkAccounting(notesRent + tokenRent)
}

// The undone transactions land again on the new fork, or are lost.
func TestAForkRollsBackBothLegs(t *testing.T) {
	t.Parallel()
	for name, landAgain := range map[string]func(*bank.Landed) bool{
		"landing again": bank.LandAgain,
		"lost":          nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const finalizeAfter = 100 // on a busy machine both legs take longer than mainnet's 32 blocks
			s := newSwapFixture(t, fixtureOptions{slotDuration: forkSlot, finalizeAfter: finalizeAfter})
			w := s.submitSwap(nil)
			var first any
			eventually(t, "the swap is executed", func() bool {
				a := w.status()
				first = a.at("data", "swap_signature")
				return a.at("data", "status") == "completed"
			})
			if undone := s.fork(s.landingSlot(w.firstSignature), landAgain); len(undone) < 2 {
				t.Fatalf("the fork undid %d transactions, want both legs", len(undone))
			}
			if landAgain == nil {
				s.waitReopened(2)
			}
			eventually(t, "the first leg has landed again", func() bool { return w.status().at("data", "swap_phase") != nil })
			// The execution's blockhash is usually on the abandoned fork, so the execution cannot
			// land again. The relay knows that once a block past its last valid height is final.
			s.chain.Advance(blockhashBlocks + finalizeAfter + 20)
			a := w.waitExecuted()
			if n, same := w.attempts("execute"), a.at("data", "swap_signature") == first; n > 2 || (n == 1) != same {
				t.Errorf("%d executions were signed, and the first one ended the swap: %v; want 1 and true, or 2 and false", n, same)
			}
			s.checkAccounting(notesRent + tokenRent)
		})
	}
}

// The same execution lands again.
func TestAForkRollsBackAnExecution(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: forkSlot})
	s.makeRoutesInvalid()
	w := s.submitSwap(nil)
	w.waitPhase("funded", "router_hostile")
	s.chain.Finalize() // the first leg
	s.resetRouter()
	var execution any
	eventually(t, "the swap is executed", func() bool {
		a := w.status()
		execution = a.at("data", "swap_signature")
		return a.at("data", "status") == "completed"
	})
	s.fork(s.landingSlot(execution), nil)
	s.waitReopened(1)
	if a := w.waitExecuted(); a.at("data", "swap_signature") != execution || w.attempts("execute") != 1 {
		t.Errorf("%d executions were signed, want only the first, which lands again", w.attempts("execute"))
	}
	s.checkAccounting(notesRent + tokenRent)
}

// The swap was reported as completed, and ends in a refund.
func TestAForkRollsBackAnExecutionAndThePriceHasFallen(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: forkSlot})
	s.makeRoutesInvalid()
	w := s.submitSwap(nil)
	w.waitPhase("funded", "router_hostile")
	s.chain.Finalize() // the first leg
	s.resetRouter()
	var execution any
	eventually(t, "the swap is executed", func() bool {
		a := w.status()
		execution = a.at("data", "swap_signature")
		return a.at("data", "status") == "completed"
	})
	s.setPrice(50)
	s.fork(s.landingSlot(execution), nil)
	s.setPrice(50) // on the new fork too
	s.waitReopened(1)
	w.waitPhase("funded", "swap_price")
	a := w.waitRefunded(0)
	if a.at("data", "swap_phase") != "refunded" {
		t.Errorf("the swap ended with %v, want phase refunded", a.body)
	}
	if landed, failed := w.executions(); landed != 0 || failed != 1 {
		t.Errorf("%d executions landed and %d failed, want 0 and 1", landed, failed)
	}
	s.checkAccounting(notesRent + stateRent)
}

// The lamports are in the swap's state again, and the same refund lands again.
func TestAForkRollsBackARefund(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: forkSlot})
	s.failRouter(fault.Rule{Cut: true})
	w := s.submitSwap(nil)
	w.skipTo(0)
	var refund any
	eventually(t, "the swap is refunded", func() bool {
		a := w.status()
		refund = a.at("data", "refund_signature")
		return a.at("data", "status") == "failed"
	})
	s.fork(s.landingSlot(refund), nil)
	s.waitReopened(1)
	a := w.waitRefunded(0)
	if a.at("data", "refund_signature") != refund || w.attempts("refund") != 1 {
		t.Errorf("%d refunds were signed, want only the first, which lands again", w.attempts("refund"))
	}
	s.checkAccounting(notesRent + stateRent)
}

// On the new fork another transaction spends the notes, so the swap fails, and the relay signs
// nothing for its second leg.
func TestASwapFailsIfAForkSpendsItsNotesElsewhere(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: forkSlot})
	stranger := s.stranger()
	s.failRouter(fault.Rule{Status: http.StatusServiceUnavailable})
	w := s.submitSwap(nil)
	w.waitPhase("funded", "router_unavailable")
	to := newKey(t).PublicKey()
	in := *w.call.Inputs
	in.ExtDataHash = shieldpool.ExtDataHash(shieldpool.Destination{Recipient: to})
	other := &shieldpool.Call{Proof: s.forger.prove(t, &in), Inputs: &in, Destination: shieldpool.Destination{Recipient: to}}
	s.setFaults(relayEndpoint, droppedSend())
	s.fork(s.landingSlot(w.firstSignature), nil)
	s.sendWithoutRelay(stranger, other)
	s.resetRouter()
	s.setFaults(relayEndpoint)
	var a *answer
	eventually(t, "the swap has failed", func() bool {
		a = w.status()
		return a.at("data", "status") == "failed"
	})
	if a.at("data", "error_code") != "nullifier_spent" || a.at("data", "swap_phase") != nil || a.at("data", "refund_signature") != nil {
		t.Errorf("the swap's status is %v, want nullifier_spent without a phase", a.body)
	}
	if n := s.queryInt("SELECT count(*) FROM attempts WHERE purpose <> 'transact'"); n != 0 {
		t.Errorf("%d transactions were signed for the second leg, want 0", n)
	}
	if n := s.queryInt("SELECT count(*) FROM submissions WHERE state = 'failed'"); n != 2 {
		t.Errorf("%d submissions have failed, want both legs", n)
	}
	if n := s.queryInt("SELECT count(*) FROM swaps WHERE NOT ended"); n != 0 {
		t.Errorf("%d swaps have not ended, want 0", n)
	}
	if n := s.lamportsOf(w.wallet.PublicKey()); n != 0 {
		t.Errorf("the wallet got %d lamports, want 0", n)
	}
	s.waitHealthy()
}

// The relay has observed that the fork removed the swap's state, but not that the state was
// created again before a stranger executed the swap.
func TestAStrangerEndsASwapThatAForkRolledBack(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: forkSlot})
	stranger := s.stranger()
	s.failRouter(fault.Rule{Status: http.StatusServiceUnavailable})
	w := s.submitSwap(nil)
	w.waitPhase("funded", "router_unavailable")
	s.setFaults(relayEndpoint, droppedSend())
	s.fork(s.landingSlot(w.firstSignature), nil)
	s.waitReopened(1)
	eventually(t, "the second leg waits for the swap's state", func() bool {
		return s.queryInt("SELECT count(*) FROM submissions WHERE parent IS NOT NULL AND hold_reason = 'swap_state_missing'") == 1
	})
	s.sendAs(stranger, w.swap.CreateAccounts(stranger.PublicKey(), w.wallet.PublicKey())...)
	var first []byte
	must(t, s.db.QueryRow(t.Context(), "SELECT raw FROM attempts WHERE purpose = 'transact'").Scan(&first))
	// The relay cannot read accounts until the stranger has executed the swap.
	s.setFaults(relayEndpoint, droppedSend(), fault.Rule{Method: "getMultipleAccounts", Status: http.StatusServiceUnavailable})
	must(t, s.rpc.Send(t.Context(), first, false, 0))
	eventually(t, "the swap's state exists again", func() bool { return s.account(w.swap.State) != nil })
	w.executeAs(stranger)
	s.setFaults(relayEndpoint)
	s.resetRouter()
	w.waitExecuted()
	s.waitHealthy()
}
