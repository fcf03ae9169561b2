package chain

import (
	"context"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

// consensusEvery is how many times the slots are read before the consensus rules are read
// again.
const consensusEvery = 12

// ReadConsensus reads the consensus rules once, unless they are known to be Alpenglow's: a chain
// does not leave Alpenglow.
func (f *Finality) ReadConsensus(ctx context.Context) {
	if f.Report().Consensus == onchain.Alpenglow {
		return
	}
	counts := map[onchain.Consensus]int{}
	for _, c := range askEach(ctx, f.endpoints, query[onchain.Consensus]{
		method: "getAgGenesisCert", urgency: outbound.Background,
		do: func(ctx context.Context, source askedEndpoint) (onchain.Consensus, error) {
			return source.Consensus(ctx)
		},
	}) {
		counts[c]++
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case counts[onchain.Alpenglow] >= f.needed():
		f.last.Consensus = onchain.Alpenglow
		f.log.InfoContext(ctx, "chain runs under Alpenglow: confirmed is final")
	case counts[onchain.TowerBFT] > 0:
		f.last.Consensus = onchain.TowerBFT
	}
}
