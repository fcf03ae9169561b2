package txmgr_test

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// laneWorld is a world whose RPC endpoints lose every transaction that they accept, with a relay
// that also knows a lane, which loses none.
func laneWorld(t *testing.T, lane txmgr.Lane) (*world, *relay) {
	t.Helper()
	w := newWorld(t)
	all := w.listen("node", "second", "lane")
	all[2].Roles = []chain.Role{chain.RoleLane}
	for _, name := range []string{"node", "second"} {
		w.faults(name, fault.Rule{Method: "sendTransaction", Drop: true})
	}
	e := w.endpoints(all...)
	go e.Run(t.Context())
	r := w.relayThrough(e)
	lane.Name = "lane"
	r.Lanes = []txmgr.Lane{lane}
	w.run(r)
	return w, r
}

func TestATransactionThatExpiredGoesToALane(t *testing.T) {
	t.Parallel()
	to := solana.NewWallet().PublicKey()
	w, r := laneWorld(t, txmgr.Lane{Accounts: []solana.PublicKey{to}, MinTip: 7000, MaxTip: 9000})
	must(t, w.chain.Fund(to, sol))
	w.eventually("the tip account exists", func() bool { return w.balance(to) == sol })
	before := w.balance(w.payer.PublicKey())
	req, _ := w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.eventually("the first attempt is sent", func() bool { return r.count("signed") == 1 })
	w.clock.advance(90 * time.Second) // longer than a blockhash lives
	w.eventually("it expires, and the second one lands", func() bool { return w.get(id).Done() })
	if s := w.get(id); s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v, failure %v; want it completed", s, s.Failure)
	}
	w.eventually("its landing is counted", func() bool { return r.count("landed within a life: true") == 1 })
	if got := w.balance(to) - sol; got != 7000 {
		t.Errorf("the lane's account received %d lamports, want 7000", got)
	}
	if n := r.count("expired on lane "); n != 1 {
		t.Errorf("%d attempts without a lane expired, want 1", n)
	}
	figures, err := w.store.Lanes(t.Context(), time.Now().Add(-time.Hour))
	must(t, err)
	if len(figures) != 2 || figures[0].Lane != "lane" || figures[0].Landed != 1 || figures[0].Expired != 0 || figures[0].Paid != 1000 ||
		figures[1].Lane != "rpc" || figures[1].Landed != 0 || figures[1].Expired != 1 {
		t.Fatalf("the figures are %+v, want one landing of the lane and one expired attempt without", figures)
	}
	paid := before - w.balance(w.payer.PublicKey())
	if rent := 2 * chainRent().Minimum(0); paid != rent+uint64(figures[0].Lamports) || figures[0].P50 <= 0 {
		t.Errorf("the payer paid %d lamports, want the rent of %d and the fee and tip of %+v", paid, rent, figures[0])
	}
	if rows, err := w.store.LiveAttempts(t.Context(), -time.Hour, 10); err != nil || len(rows) > 1 {
		t.Errorf("%d attempts may still land (%v), want at most the one that landed", len(rows), err)
	}
}
