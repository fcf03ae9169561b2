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

// fork undoes everything from the slot on, and returns the undone transactions.
func (s *swapFixture) fork(from uint64, again func(*bank.Landed) bool) []bank.Undone {
	s.t.Helper()
	undone, err := s.chain.ForkFrom(from, again)
	must(s.t, err)
	return undone
}

func (s *swapFixture) waitReopened(atLeast float64) {
	s.t.Helper()
	eventually(s.t, "the relay has reopened what the fork undid", func() bool {
		n, _ := s.metric(contract.MetricAttempts, `event="reopened"`)
		return n >= atLeast
	})
}

// TestAForkRollsBackTheFirstLeg after its second leg was made: the second leg waits,
// the first leg lands again, and the swap continues.
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
	eventually(t, "the settlement waits for its state", func() bool {
		return s.queryInt("SELECT count(*) FROM submissions WHERE parent IS NOT NULL AND hold_reason = 'swap_state_missing'") == 1
	})
	if n := w.attempts("execute") + w.attempts("refund"); n != 0 {
		t.Errorf("%d transactions were signed for a swap that had not begun", n)
	}
	s.setFaults(relayEndpoint)
	w.waitExecuted()
	if n := s.queryInt("SELECT count(*) FROM submissions"); n != 2 {
		t.Errorf("there are %d rows for the two legs of one swap", n)
	}
	s.checkAccounting(notesRent + tokenRent)
}

// TestAForkRollsBackBothLegs: the fork lands some transactions again by itself, or none.
func TestAForkRollsBackBothLegs(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(*bank.Landed) bool{
		"and lands them again": bank.LandAgain,
		"and loses them":       nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwapFixture(t, fixtureOptions{slotDuration: forkSlot})
			w := s.submitSwap(nil)
			var first any
			eventually(t, "it is executed", func() bool {
				a := w.status()
				first = a.at("data", "swap_signature")
				return a.at("data", "status") == "completed"
			})
			if undone := s.fork(s.landingSlot(w.firstSignature), again); len(undone) < 2 {
				t.Fatalf("the fork undid %d transactions, want both legs", len(undone))
			}
			if again == nil {
				s.waitReopened(2)
			}
			eventually(t, "the first leg has landed again", func() bool { return w.status().at("data", "swap_phase") != nil })
			// The execution's blockhash was usually younger than the first leg's, and is lost too:
			// finality past its last valid block proves that, and the test does not wait for it.
			s.chain.Advance(blockhashBlocks + 50)
			a := w.waitExecuted()
			if n, same := w.attempts("execute"), a.at("data", "swap_signature") == first; n > 2 || (n == 1) != same {
				t.Errorf("after the fork %d executions were signed, and that which counts is the first: %v", n, same)
			}
			s.checkAccounting(notesRent + tokenRent)
		})
	}
}

// TestAForkRollsBackAnExecution: the same bytes land again.
func TestAForkRollsBackAnExecution(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: forkSlot})
	s.makeRoutesInvalid()
	w := s.submitSwap(nil)
	w.waitPhase("funded", "router_hostile")
	s.chain.Finalize() // the first leg
	s.resetRouter()
	var execution any
	eventually(t, "it is executed", func() bool {
		a := w.status()
		execution = a.at("data", "swap_signature")
		return a.at("data", "status") == "completed"
	})
	s.fork(s.landingSlot(execution), nil)
	s.waitReopened(1)
	if a := w.waitExecuted(); a.at("data", "swap_signature") != execution || w.attempts("execute") != 1 {
		t.Errorf("after the fork %d executions were signed: the first one was as good", w.attempts("execute"))
	}
	s.checkAccounting(notesRent + tokenRent)
}

// TestAForkRollsBackAnExecutionAndThePriceHasFallen: the swap was reported as
// completed, and ends in a refund.
func TestAForkRollsBackAnExecutionAndThePriceHasFallen(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: forkSlot})
	s.makeRoutesInvalid()
	w := s.submitSwap(nil)
	w.waitPhase("funded", "router_hostile")
	s.chain.Finalize() // the first leg
	s.resetRouter()
	var execution any
	eventually(t, "it is executed", func() bool {
		a := w.status()
		execution = a.at("data", "swap_signature")
		return a.at("data", "status") == "completed"
	})
	s.setPrice(50)
	s.fork(s.landingSlot(execution), nil)
	s.setPrice(50) // on the new branch too
	s.waitReopened(1)
	w.waitPhase("funded", "swap_price")
	a := w.waitRefunded(0)
	if a.at("data", "swap_phase") != "refunded" {
		t.Errorf("it ended as %v", a.body)
	}
	if landed, failed := w.executions(); landed != 0 || failed != 1 {
		t.Errorf("%d executions landed and %d failed, want the first one to fail on the new branch", landed, failed)
	}
	s.checkAccounting(notesRent + stateRent)
}

// TestAForkRollsBackARefund: the lamports are in the state again, and go back again.
func TestAForkRollsBackARefund(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: forkSlot})
	s.failRouter(fault.Rule{Cut: true})
	w := s.submitSwap(nil)
	w.skipTo(0)
	var refund any
	eventually(t, "it is refunded", func() bool {
		a := w.status()
		refund = a.at("data", "refund_signature")
		return a.at("data", "status") == "failed"
	})
	s.fork(s.landingSlot(refund), nil)
	s.waitReopened(1)
	a := w.waitRefunded(0)
	if a.at("data", "refund_signature") != refund || w.attempts("refund") != 1 {
		t.Errorf("%d refunds were signed: the first one was as good", w.attempts("refund"))
	}
	s.checkAccounting(notesRent + stateRent)
}

// TestAForkSpendsTheNotesElsewhere: on the new branch another transaction spends the notes,
// so that there is no swap, and the relay signs nothing for it.
func TestAForkSpendsTheNotesElsewhere(t *testing.T) {
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
		t.Errorf("its status is %v", a.body)
	}
	if n := s.queryInt("SELECT count(*) FROM attempts WHERE purpose <> 'transact'"); n != 0 {
		t.Errorf("%d transactions were signed for a swap that never was", n)
	}
	if n := s.queryInt("SELECT count(*) FROM submissions WHERE state = 'failed'"); n != 2 {
		t.Errorf("%d of two rows have failed", n)
	}
	if n := s.queryInt("SELECT count(*) FROM swaps WHERE NOT ended"); n != 0 {
		t.Errorf("%d swaps have not ended", n)
	}
	if n := s.lamportsOf(w.wallet.PublicKey()); n != 0 {
		t.Errorf("the wallet got %d lamports", n)
	}
	s.waitHealthy()
}

// TestAStrangerEndsASwapThatAForkRolledBack: the relay has observed that the state was
// closed, but not that it was restored.
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
	eventually(t, "the settlement waits for its state", func() bool {
		return s.queryInt("SELECT count(*) FROM submissions WHERE parent IS NOT NULL AND hold_reason = 'swap_state_missing'") == 1
	})
	s.sendAs(stranger, w.swap.Accounts(stranger.PublicKey(), w.wallet.PublicKey())...)
	var first []byte
	must(t, s.db.QueryRow(t.Context(), "SELECT raw FROM attempts WHERE purpose = 'transact'").Scan(&first))
	// The relay cannot read the chain until all is over.
	s.setFaults(relayEndpoint, droppedSend(), fault.Rule{Method: "getMultipleAccounts", Status: http.StatusServiceUnavailable})
	must(t, s.rpc.Send(t.Context(), first, false, 0))
	eventually(t, "the state is there again", func() bool { return s.account(w.swap.State) != nil })
	w.executeAs(stranger)
	s.setFaults(relayEndpoint)
	s.resetRouter()
	w.waitExecuted()
	s.waitHealthy()
}
