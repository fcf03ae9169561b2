package chainwatch

import (
	"context"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

// Endpoint is one RPC server of a RelayPool.
type Endpoint struct {
	// Name stands for the endpoint in errors and logs.
	Name string
	// Identity changes when the URL or the reference to the authorities may have changed. For an
	// inline URL, Identity may be the URL's hash. For a URL in a Secret, it may be the Secret's
	// name, key and resource version. Identity is compared and never shown.
	Identity string
	// URL returns the URL at the time of a check. Its errors are shown in conditions: they
	// must name the Secret and its key, and must not contain any of the value.
	URL func(ctx context.Context) (string, error)
	// CA returns the only authorities of the endpoint's certificate, in PEM, at the time of a
	// check. If it is nil, these are the system's. Its errors are shown like those of URL.
	CA func(ctx context.Context) (string, error)
}

// Query is what to read for one RelayPool. It must not change after Set.
type Query struct {
	// Target is the pool. Its Extra is not used: see Payers.
	Target poolcheck.Target
	// Endpoints are the endpoints for reads, in the order in which they are tried.
	Endpoints []Endpoint
	// Finalized reads at the commitment level finalized instead of confirmed.
	Finalized bool
	// Interval is the time between checks, plus or minus a tenth. 0 means one minute.
	Interval time.Duration
	// Payers are the addresses whose balances are read, of active and of retired keys.
	Payers []solana.PublicKey
	// Thresholds are the minimum and the target balance of a fee payer, in lamports. The
	// reconciler gets an event whenever a balance crosses one of them.
	Thresholds []uint64
}

// sameQuery compares everything but the functions, which Identity represents.
func sameQuery(a, b *Query) bool {
	return a.Interval == b.Interval && a.Finalized == b.Finalized &&
		slices.Equal(a.Payers, b.Payers) && slices.Equal(a.Thresholds, b.Thresholds) &&
		slices.EqualFunc(a.Endpoints, b.Endpoints, func(a, b Endpoint) bool { return a.Name == b.Name && a.Identity == b.Identity }) &&
		sameTarget(a.Target, b.Target)
}
