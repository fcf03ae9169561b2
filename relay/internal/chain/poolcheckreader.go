package chain

import (
	"context"
	"errors"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// PoolCheckReader reads the chain for the checks of a pool, at the confirmed commitment.
type PoolCheckReader struct{ source genesisReader }

// genesisReader is a *rpc.Client or an *Endpoints.
type genesisReader interface {
	AccountReader
	GenesisHash(ctx context.Context) (solana.Hash, error)
}

// NewPoolCheckReader makes a poolcheck.Reader of a *rpc.Client or of *Endpoints.
func NewPoolCheckReader(source genesisReader) PoolCheckReader { return PoolCheckReader{source} }

// GenesisHash implements poolcheck.Reader. If the hash of the relay's chain is known, endpoints of
// other chains cause no error here, because the relay does not use them.
func (c PoolCheckReader) GenesisHash(ctx context.Context) (solana.Hash, error) {
	hash, err := c.source.GenesisHash(ctx)
	var foreign *GenesisError
	if errors.As(err, &foreign) && !hash.IsZero() {
		return hash, nil
	}
	return hash, err
}

// Accounts implements poolcheck.Reader.
func (c PoolCheckReader) Accounts(ctx context.Context, keys []solana.PublicKey) (uint64, []*onchain.Account, error) {
	accounts, slot, err := c.source.Accounts(ctx, keys, onchain.Confirmed, 0)
	if err != nil {
		return 0, nil, err
	}
	return slot, accounts, nil
}
