package commitments

import (
	"context"

	"github.com/relaypool/relaypool/relay/onchain"
)

// countUnknown counts the block's transactions of unknown versions, and logs the first such block.
func (f *Follower) countUnknown(ctx context.Context, b *onchain.Block) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.UnknownVersions > 0 && f.status.UnknownVersions == 0 {
		f.Log.WarnContext(ctx, "block holds transactions of an unknown version; update the relay", "slot", b.Slot, "transactions", b.UnknownVersions)
	}
	f.status.UnknownVersions += b.UnknownVersions
}
