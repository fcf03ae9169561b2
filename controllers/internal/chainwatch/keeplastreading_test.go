package chainwatch

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

// The balance also keeps the time at which it was last read.
func TestABalanceThatIsNotReadKeepsItsLastValue(t *testing.T) {
	t.Parallel()
	rich, unread, neverRead := solana.PublicKey{1}, solana.PublicKey{2}, solana.PublicKey{3}
	p := &pool{query: &Query{Payers: []solana.PublicKey{rich, unread, neverRead}}, history: map[solana.PublicKey]*balanceHistory{}}
	first := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	second := first.Add(time.Minute)
	p.keepReading(answer{ok: true, report: poolcheck.Report{Balances: map[solana.PublicKey]uint64{rich: 9, unread: 5}}}, first)
	p.keepReading(answer{ok: true, report: poolcheck.Report{Balances: map[solana.PublicKey]uint64{rich: 8}}}, second)
	got := map[solana.PublicKey]time.Time{}
	for key, payer := range p.reading.Payers {
		got[key] = payer.At
	}
	if diff := cmp.Diff(map[solana.PublicKey]time.Time{rich: second, unread: first}, got); diff != "" {
		t.Errorf("times at which balances were read (-want +got):\n%s", diff)
	}
	if p.reading.Payers[rich].Lamports != 8 || p.reading.Payers[unread].Lamports != 5 {
		t.Errorf("balances are %+v, want 8 and the last one, 5", p.reading.Payers)
	}
}
