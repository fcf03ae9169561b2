package chain_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/onchain"
)

// TestFinalityIsReportedAsStalled lets the chain migrate its consensus. An endpoint that reports
// slots far ahead hides nothing.
func TestFinalityIsReportedAsStalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, localnet.Options{})
	e := w.endpointsWithFaults(fault.Rule{Method: "getSlot", Ahead: 1_000_000})
	now := time.Unix(1000, 0)
	f := chain.NewFinality(e, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	read := func(after time.Duration) chain.FinalityReport {
		now = now.Add(after)
		f.Read(t.Context())
		f.ReadConsensus(t.Context())
		return f.Report()
	}
	if r := read(0); r.Stalled || r.Consensus != onchain.TowerBFT {
		t.Fatalf("at first the report is %+v, want TowerBFT and no stall", r)
	}
	w.Advance(1)
	if r := read(time.Minute); r.Stalled || !r.AdvancedAt.Equal(now) {
		t.Errorf("after a finalized slot the report is %+v, want an advance just now", r)
	}
	if err := w.StartMigration(100); err != nil {
		t.Fatal(err)
	}
	w.Advance(50)
	read(0)
	if r := read(19 * time.Second); r.Stalled {
		t.Errorf("after 19 s the report is %+v, want no stall yet", r)
	}
	w.Advance(1)
	if r := read(time.Second); !r.Stalled || !r.ProcessedAdvances {
		t.Errorf("after 20 s the report is %+v, want a stall while slots go on", r)
	}
	w.Advance(49)
	if r := read(time.Second); r.Stalled || r.Consensus != onchain.Alpenglow {
		t.Errorf("after the migration the report is %+v, want no stall under Alpenglow", r)
	}
	if r := read(time.Hour); !r.Stalled || r.ProcessedAdvances {
		t.Errorf("when the chain stands still the report is %+v, want a stall without slots", r)
	}
}
