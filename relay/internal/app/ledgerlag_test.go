package app

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/ledger"
)

// A ledger that was never complete is behind since it was first observed. A payer that was
// never funded is not behind.
func TestALedgerThatWasNeverCompleteIsBehind(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	one, two, former := solana.PublicKey{1}, solana.PublicKey{2}, solana.PublicKey{3}
	funded := func(payer solana.PublicKey) feepayer.Balance {
		return feepayer.Balance{Payer: payer, State: feepayer.StateReady, Lamports: 1}
	}
	empty, unknown := feepayer.Balance{Payer: two, State: feepayer.StateDry}, feepayer.Balance{Payer: one, State: feepayer.StateUnknown}
	cache := &accountingCache{}
	for _, step := range []struct {
		name     string
		minute   int
		cursors  []ledger.Cursor
		balances []feepayer.Balance
		want     []ledgerLag
	}{
		{"nothing is known", 0, nil, []feepayer.Balance{unknown, empty}, nil},
		{"payer one is funded", 1, nil, []feepayer.Balance{funded(one), empty}, []ledgerLag{{Payer: one, Since: at(1)}}},
		{"its history is not read", 30, nil, []feepayer.Balance{funded(one), empty}, []ledgerLag{{Payer: one, Since: at(1)}}},
		{"its ledger has started, and payer two is funded", 40, []ledger.Cursor{{Payer: former, CheckedAt: at(0)}, {Payer: one}}, []feepayer.Balance{funded(one), funded(two)},
			[]ledgerLag{{Payer: one, Since: at(1)}, {Payer: two, Since: at(40)}}},
		{"the ledger of payer one is complete", 41, []ledger.Cursor{{Payer: one, CheckedAt: at(40)}}, []feepayer.Balance{funded(one), funded(two)},
			[]ledgerLag{{Payer: one, Since: at(40), Checked: at(40)}, {Payer: two, Since: at(40)}}},
		{"payer two is empty, payer one not read", 50, []ledger.Cursor{{Payer: one, CheckedAt: at(40)}}, []feepayer.Balance{unknown, empty}, []ledgerLag{{Payer: one, Since: at(40), Checked: at(40)}}},
		{"payer two is funded again", 60, []ledger.Cursor{{Payer: one, CheckedAt: at(40)}}, []feepayer.Balance{unknown, funded(two)},
			[]ledgerLag{{Payer: one, Since: at(40), Checked: at(40)}, {Payer: two, Since: at(60)}}},
	} {
		got := cache.lags(&ledger.Snapshot{Cursors: step.cursors}, step.balances, at(step.minute))
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}
