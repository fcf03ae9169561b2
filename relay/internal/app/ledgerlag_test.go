package app

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/ledger"
)

// A ledger that was never complete has no time since which it is behind, but it is reported.
// A payer that was never funded is not behind.
func TestALedgerThatWasNeverCompleteIsBehind(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	one, two, past := solana.PublicKey{1}, solana.PublicKey{2}, solana.PublicKey{3}
	funded := func(payer solana.PublicKey) feepayer.Balance {
		return feepayer.Balance{Payer: payer, State: feepayer.StateReady, Lamports: 1}
	}
	poor, unknown := feepayer.Balance{Payer: two, State: feepayer.StateDry}, feepayer.Balance{Payer: one, State: feepayer.StateUnknown}
	b := &accountingCache{}
	for _, step := range []struct {
		name     string
		minute   int
		cursors  []ledger.Cursor
		balances []feepayer.Balance
		want     []ledgerLag
	}{
		{"nothing is known", 0, nil, []feepayer.Balance{unknown, poor}, nil},
		{"one has funds", 1, nil, []feepayer.Balance{funded(one), poor}, []ledgerLag{{Payer: one, Since: at(1)}}},
		{"nothing is read of it", 30, nil, []feepayer.Balance{funded(one), poor}, []ledgerLag{{Payer: one, Since: at(1)}}},
		{"its ledger has begun, and the other one is funded", 40, []ledger.Cursor{{Payer: past, CheckedAt: at(0)}, {Payer: one}}, []feepayer.Balance{funded(one), funded(two)},
			[]ledgerLag{{Payer: one, Since: at(1)}, {Payer: two, Since: at(40)}}},
		{"one is up to the chain", 41, []ledger.Cursor{{Payer: one, CheckedAt: at(40)}}, []feepayer.Balance{funded(one), funded(two)},
			[]ledgerLag{{Payer: one, Since: at(40), Checked: at(40)}, {Payer: two, Since: at(40)}}},
		{"and spent", 50, []ledger.Cursor{{Payer: one, CheckedAt: at(40)}}, []feepayer.Balance{unknown, poor}, []ledgerLag{{Payer: one, Since: at(40), Checked: at(40)}}},
		{"the other one is funded again", 60, []ledger.Cursor{{Payer: one, CheckedAt: at(40)}}, []feepayer.Balance{unknown, funded(two)},
			[]ledgerLag{{Payer: one, Since: at(40), Checked: at(40)}, {Payer: two, Since: at(60)}}},
	} {
		got := b.lags(&ledger.Snapshot{Cursors: step.cursors}, step.balances, at(step.minute))
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}
