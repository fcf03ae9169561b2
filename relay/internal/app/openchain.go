package app

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

// Endpoints makes the configured endpoints, without calling them.
func Endpoints(configured []config.Endpoint, o chain.EndpointsOptions) (*chain.Endpoints, error) {
	for _, e := range configured {
		roles := make([]chain.Role, len(e.Roles))
		for i, role := range e.Roles {
			roles[i] = chain.Role(role)
		}
		socket := e.WebSocketURL.Reveal()
		if e.IsLane() {
			roles, socket = []chain.Role{chain.RoleLane}, chain.NoWebSocket
		}
		o.Endpoints = append(o.Endpoints, chain.Endpoint{
			Name: e.Name, URL: e.URL.Reveal(), WebSocketURL: socket, CAFile: e.CAFile, Roles: roles, RequestsPerSecond: e.RequestsPerSecond,
		})
	}
	o.Now, o.Rand = time.Now, rand.Float64
	return chain.NewEndpoints(o)
}

// lanes returns the lanes among the configured endpoints.
func lanes(configured []config.Endpoint) (out []txmgr.Lane) {
	for _, e := range configured {
		if e.IsLane() {
			out = append(out, txmgr.Lane{Name: e.Name, Accounts: e.Tip.Accounts, MinTip: e.Tip.MinLamports, MaxTip: e.Tip.MaxLamports, Always: e.Tip.Always})
		}
	}
	return out
}

func (a *App) openChain(context.Context) error {
	c := a.options.Config
	var err error
	a.endpoints, err = Endpoints(c.Endpoints, chain.EndpointsOptions{Genesis: c.Genesis, Log: a.log, Observer: endpointEvents{a.metrics}, ReadOnce: a.store.ReadOnce})
	if err != nil {
		return err
	}
	for _, e := range a.endpoints.Status() {
		a.metrics.InitEndpoint(e.Name)
	}
	for _, l := range lanes(c.Endpoints) {
		a.metrics.InitEndpoint(l.Name)
		a.metrics.InitLane(l.Name)
	}
	if endpointsMessage(a.endpoints.Status()) != "ok" {
		a.log.Warn("landings, failures and finality rest on a single rpc endpoint: add a second one, of another provider, to confirm them")
	}
	a.rent, a.baseFee = chain.NewRentRate(a.endpoints, a.log), chain.NewBaseFeeRate(a.endpoints, a.log)
	a.finality = chain.NewFinality(a.endpoints, time.Now, a.log)
	a.pool, err = c.Profile.Pool(c.Profile.Mints[0])
	if err != nil {
		return err
	}
	o := chain.PoolOptions{Accounts: a.endpoints, Pool: a.pool, Now: time.Now, Corroborated: a.endpoints.Corroborated, SlotIsOld: a.endpoints.SlotIsOld, History: a.endpoints.FindCreation, Changed: a.treeChanged, ReadOnce: a.store.ReadOnce}
	if len(c.Endpoints)-len(lanes(c.Endpoints)) > 1 {
		o.AllEndpoints = a.endpoints.AccountAtAll
	}
	a.poolReader, err = chain.NewPool(o)
	if err != nil {
		return err
	}
	a.checks = &poolChecks{
		reader: chain.NewPoolCheckReader(a.endpoints),
		target: poolcheck.Target{Profile: c.Profile, Genesis: c.Genesis, Key: poolcheck.KeyOf(c.Key)},
	}
	a.lookupTable = newLookupTable(c.LookupTable, a.pool)
	a.formats = newTransactionFormats(c, a.lookupTable, chain.NewFeatureGate(chain.TransactionV1Gate, a.endpoints, a.log))
	a.genesisGate = newGenesisGate(a.endpoints, c.Genesis, c.Key.Hash(), func(ctx context.Context) error {
		a.formats.read(ctx)
		return readLookupTable(ctx, a.endpoints, a.lookupTable, a.pool)
	})
	a.commitmentIndex, err = a.newCommitmentIndex(a.pool)
	return err
}
