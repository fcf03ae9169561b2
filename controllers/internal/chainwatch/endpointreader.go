package chainwatch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/cafile"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/rpc"
)

// genesisMaxAge is how long an endpoint's genesis hash is cached.
const genesisMaxAge = time.Hour

// reader reads one endpoint at one commitment level.
type reader struct {
	*rpc.Client
	commitment onchain.Commitment
}

// dial makes a reader of an endpoint, without a call. It trusts only the authorities in ca, unless
// ca is empty, and then takes no URL without TLS, as relays do. The reader's errors omit the text of
// the endpoint's refusals: a condition shows errors to everybody who may read RelayPools, and the URL
// may lead to a server that only the operator can reach.
func dial(client *http.Client, url, ca string, finalized bool, now func() time.Time, timeout time.Duration) (poolcheck.Reader, error) {
	if ca != "" {
		if !strings.HasPrefix(url, "https://") {
			return nil, errors.New("the endpoint has authorities for its certificate, and its URL does not begin with https://: correct the URL, or remove caFrom")
		}
		var err error
		if client, err = trusting(client, ca); err != nil {
			return nil, err
		}
	}
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

// trusting returns a client with the settings of another that trusts only the authorities in ca. It
// keeps no connection: the authorities may be others at the next check, a minute later.
func trusting(client *http.Client, ca string) (*http.Client, error) {
	base, ok := client.Transport.(*http.Transport)
	if !ok {
		return nil, fmt.Errorf("client of the chain watcher has a transport of the type %T: expected an *http.Transport", client.Transport)
	}
	roots, err := cafile.Parse([]byte(ca))
	if err != nil {
		return nil, fmt.Errorf("parse the authorities of the endpoint's certificate: %w", err)
	}
	transport := base.Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	transport.DisableKeepAlives = true
	own := *client
	own.Transport = transport
	return &own, nil
}

// Accounts implements poolcheck.Reader.
func (r reader) Accounts(ctx context.Context, keys []solana.PublicKey) (uint64, []*onchain.Account, error) {
	accounts, slot, err := r.Client.Accounts(ctx, keys, r.commitment, 0)
	return slot, accounts, err
}

var errForeign = errors.New("serves another chain")

// readEndpoint reads one endpoint, within the timeout. If the error is errForeign, the facts
// contain the genesis hash of the endpoint's chain.
func (c *checker) readEndpoint(ctx context.Context, e *Endpoint, t poolcheck.Target, finalized bool) (poolcheck.Facts, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, rpc.ErrLimit)
	defer cancel()
	facts := poolcheck.Facts{Target: t}
	url, err := e.URL(ctx)
	if err != nil {
		return facts, err
	}
	ca := ""
	if e.CA != nil {
		if ca, err = e.CA(ctx); err != nil {
			return facts, err
		}
	}
	r, err := c.dial(url, ca, finalized)
	if err != nil {
		return facts, err
	}
	if facts.Genesis, err = c.genesis(ctx, e.Name, maphash.Comparable(c.seed, [2]string{url, ca}), r); err != nil {
		return facts, err
	}
	if !t.Genesis.IsZero() && facts.Genesis != t.Genesis {
		facts.Read(ctx, r) // reads nothing from another chain, and records why
		return facts, fmt.Errorf("%w: its genesis hash is %s", errForeign, facts.Genesis)
	}
	facts.Read(ctx, r)
	if facts.AccountsErr != nil {
		return facts, facts.AccountsErr
	}
	return facts, c.rejectFarBehind(facts.Slot)
}

// genesis returns the genesis hash. It reads the hash once an hour, and when the hash of the server's
// URL and authorities has changed.
func (c *checker) genesis(ctx context.Context, name string, server uint64, r poolcheck.Reader) (solana.Hash, error) {
	state := c.stateOf(name)
	if state.serverHash == server && !state.genesisAt.IsZero() && c.now().Sub(state.genesisAt) < genesisMaxAge {
		return state.genesis, nil
	}
	genesis, err := r.GenesisHash(ctx)
	if err != nil {
		return solana.Hash{}, err
	}
	state.serverHash, state.genesis, state.genesisAt = server, genesis, c.now()
	return genesis, nil
}
