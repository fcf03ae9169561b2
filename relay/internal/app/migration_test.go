package app

import (
	"slices"
	"testing"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/onchain"
)

// TestWorkSurvivesTheConsensusMigration lets the chain migrate to Alpenglow while withdrawals are
// under way: nothing lands, nothing becomes confirmed, and the block height falls back. Nothing is
// declared dead meanwhile, health says what it is, and afterwards everything completes once.
func TestWorkSurvivesTheConsensusMigration(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits until finality has stood still for long enough")
	}
	const pause = 1500 // half a minute
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, endpoints: []string{"one", "two"}})
	s.waitHealthy()
	f.depositNotes(s)
	before := f.submitWithdrawals(s, 4)
	must(t, s.chain.StartMigration(pause))
	during := f.submitWithdrawals(s, 4)
	s.waitHealthReport("finality", "stands still", "while slots go on", "nothing to do")
	if n := s.queryInt("SELECT count(*) FROM attempts WHERE dead"); n != 0 {
		t.Errorf("%d attempts are declared dead while finality stands still, want none", n)
	}
	s.waitCompleted(slices.Concat(before, during))
	eventually(t, "every submission is final", func() bool {
		return s.queryInt("SELECT count(*) FROM submissions WHERE finalized") == len(before)+len(during)
	})
	s.waitHealthy()
	if paid := s.queryInt("SELECT count(*) FROM attempts WHERE paid > 0"); paid != 0 {
		t.Errorf("%d attempts failed on the chain and cost their fee, want none", paid)
	}
	s.app.finality.ReadConsensus(t.Context())
	if v, ok := s.metric(contract.MetricConsensus, `rules="`+string(onchain.Alpenglow)+`"`); !ok || v != 1 {
		t.Errorf("the metric of the consensus is %v (present: %v), want 1 for alpenglow", v, ok)
	}
	s.waitCompleted(f.submitWithdrawals(s, 1))
}
