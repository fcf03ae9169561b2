package chain

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// ProcessedTree returns the tree account at the processed commitment, as one endpoint shows it. What it
// has beyond AgreedTree may be undone. Callers share the snapshot, and a failure, for MinInterval: do
// not change it.
func (p *PoolReader) ProcessedTree(ctx context.Context) (onchain.Snapshot, error) {
	since := p.now().Add(-p.interval)
	p.mu.Lock()
	known := p.processed
	p.mu.Unlock()
	for known.at.Before(since) {
		done := p.flight.DoChan("processed", func() (any, error) { return p.readProcessed(context.WithoutCancel(ctx)), nil })
		select {
		case <-ctx.Done():
			return onchain.Snapshot{}, unavailable(ctx.Err())
		case r := <-done:
			if read, ok := r.Val.(reading); ok {
				known = read
			}
		}
	}
	return known.snapshot, known.err
}

// readProcessed reads the account. Only one call runs at a time.
func (p *PoolReader) readProcessed(ctx context.Context) reading {
	r := reading{at: p.now()}
	accounts, slot, err := p.accounts.Accounts(ctx, []solana.PublicKey{p.pool.MerkleTree}, onchain.Processed, 0)
	if err != nil {
		r.err = unavailable(err)
	} else {
		p.updating.Lock()
		r.snapshot, r.err = p.parse(accounts[0], slot, r.at)
		p.updating.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.processed = r
	return r
}
