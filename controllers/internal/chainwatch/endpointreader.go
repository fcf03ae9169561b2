package chainwatch

import (
	"context"
	"net/http"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/rpc"
)

// reader reads one endpoint at one commitment level.
type reader struct {
	*rpc.Client
	commitment onchain.Commitment
}

// dial makes a reader of an endpoint, without a call. The reader's errors omit the text
// of the endpoint's refusals: a condition shows errors to everybody who may read
// RelayPools, and the URL may lead to a server that only the operator can reach.
func dial(client *http.Client, url string, finalized bool, now func() time.Time, timeout time.Duration) (poolcheck.Reader, error) {
	c, err := rpc.New(rpc.Options{URL: url, HTTP: client, Now: now, Timeout: timeout, Silent: true})
	if err != nil {
		return nil, err
	}
	r := reader{c, onchain.Confirmed}
	if finalized {
		r.commitment = onchain.Finalized
	}
	return r, nil
}

// Accounts implements poolcheck.Reader.
func (r reader) Accounts(ctx context.Context, keys []solana.PublicKey) (uint64, []*onchain.Account, error) {
	accounts, slot, err := r.Client.Accounts(ctx, keys, r.commitment, 0)
	return slot, accounts, err
}
