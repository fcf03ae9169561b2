package txmgr_test

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// A tip account that does not exist cannot take a tip below the minimum balance. The transaction
// then goes without.
func TestAnUnusableTipAccountHoldsNothing(t *testing.T) {
	t.Parallel()
	w, r := laneWorld(t, txmgr.Lane{Accounts: []solana.PublicKey{solana.NewWallet().PublicKey()}, MinTip: 7000, MaxTip: 9000, Always: true})
	w.faults("node")
	req, _ := w.withdrawal(sol)
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v, failure %v; want it completed", s, s.Failure)
	}
	figures, err := w.store.Lanes(t.Context(), time.Now().Add(-time.Hour))
	must(t, err)
	if len(figures) != 1 || figures[0].Lane != "rpc" || figures[0].Landed != 1 || figures[0].Expired != 0 {
		t.Errorf("the figures are %+v, want one landing without a lane", figures)
	}
}

// Notes that fill the transaction leave no room for a tip.
func TestATransactionWithoutRoomForATipGoesWithout(t *testing.T) {
	t.Parallel()
	to := solana.NewWallet().PublicKey()
	w, r := laneWorld(t, txmgr.Lane{Accounts: []solana.PublicKey{to}, MinTip: 7000, MaxTip: 9000, Always: true})
	w.faults("node")
	must(t, w.chain.Fund(to, sol))
	w.eventually("the tip account exists", func() bool { return w.balance(to) == sol })
	for _, test := range []struct {
		unused int // bytes of the note bound
		tip    uint64
	}{{0, 0}, {48, 0}, {49, 7000}} {
		req, _ := w.withdrawal(sol)
		req.Notes = [][]byte{make([]byte, r.NoteBounds()["withdrawal"]-8-test.unused)}
		before := w.balance(to)
		if s := w.done(w.submit(r, req).ID); s.State != submission.Completed {
			t.Fatalf("with %d bytes unused the submission ended as %+v, failure %v; want it completed", test.unused, s, s.Failure)
		}
		if got := w.balance(to) - before; got != test.tip {
			t.Errorf("with %d bytes unused the tip is %d lamports, want %d", test.unused, got, test.tip)
		}
	}
}
