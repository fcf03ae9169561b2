package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/cafile"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/rpc"
)

type probeCmd struct{ config.Probe }

// errProbe makes relay probe exit with 1; the output says why.
var errProbe = errors.New("a check failed: the table names it and what to do")

// Run reads endpoints, pool and payers, and prints what it found. It changes nothing, and
// uses no database.
func (c *probeCmd) Run(env *environment) error {
	c.EarlierProblems = env.malformed
	payers, err := c.payerAddresses()
	if err != nil {
		c.EarlierProblems = append(c.EarlierProblems, err)
	}
	request, err := c.Load()
	if err != nil {
		return err
	}
	p := &probe{ProbeRequest: request, flags: &c.Probe}
	if err := p.open(); err != nil {
		return err
	}
	defer p.close()
	for _, s := range request.Signers {
		payers = append(payers, s.Address)
	}
	report := p.run(env, payers)
	p.checkSigners(env, report)
	report.conclude()
	write := report.writeTable
	if c.Output == "json" {
		write = report.writeJSON
	}
	if err := write(env.out); err != nil {
		return err
	}
	if !report.OK {
		return errProbe
	}
	return nil
}

// payerAddresses returns the addresses of the fee payers whose key files are configured. Load
// reports paths without a readable file.
func (c *probeCmd) payerAddresses() (addresses []solana.PublicKey, err error) {
	if err := checkFeePayerKeys(c.FeePayerKeyFile); err != nil {
		return nil, err
	}
	keys, err := feepayer.ReadKeys(c.FeePayerKeyFile)
	if err != nil {
		return nil, nil //nolint:nilerr // a probe needs no key file; if one is missing, Load lists the problem without the path
	}
	for _, key := range keys {
		addresses = append(addresses, key.PublicKey())
	}
	return addresses, nil
}

// errNoEndpoint means that no endpoint can be used to read the pool.
var errNoEndpoint = errors.New("no RPC endpoint with the role read answers")

// noReader is a reader that returns only errNoEndpoint.
type noReader struct{}

func (noReader) GenesisHash(context.Context) (solana.Hash, error) {
	return solana.Hash{}, errNoEndpoint
}

func (noReader) Accounts(context.Context, []solana.PublicKey) (uint64, []*onchain.Account, error) {
	return 0, nil, errNoEndpoint
}

// probe makes the checks.
type probe struct {
	*config.ProbeRequest
	flags   *config.Probe
	clients []*rpc.Client
	// connections are those of the clients.
	connections []*http.Client
}

// open makes a client for each endpoint, each with its own connections, because each may trust
// other authorities.
func (p *probe) open() error {
	for _, e := range p.Endpoints {
		connections := rpc.NewHTTPClient()
		p.connections = append(p.connections, connections)
		if e.CAFile != "" {
			if err := cafile.Trust(connections, cafile.Options{Path: e.CAFile, Now: time.Now}); err != nil {
				return fmt.Errorf("endpoint %s: %w", e.Name, err)
			}
		}
		c, err := rpc.New(rpc.Options{URL: e.URL.Reveal(), HTTP: connections, Now: time.Now, Timeout: p.flags.Timeout})
		if err != nil {
			return fmt.Errorf("endpoint %s: %w", e.Name, err)
		}
		p.clients = append(p.clients, c)
	}
	return nil
}

func (p *probe) close() {
	for _, c := range p.connections {
		c.CloseIdleConnections()
	}
}

func (p *probe) run(ctx context.Context, payers []solana.PublicKey) *probeReport {
	r := &probeReport{Endpoints: p.readEndpoints(ctx), Payers: []probedPayer{}}
	target := poolcheck.Target{Profile: p.Profile, Genesis: p.Genesis, Extra: payers}
	if p.Key != nil {
		target.Key = poolcheck.KeyOf(p.Key)
	}
	readCtx, cancel := context.WithTimeout(ctx, p.flags.Timeout)
	defer cancel()
	client := p.reader(r.Endpoints)
	var reader poolcheck.Reader = noReader{}
	if client != nil {
		reader = chain.NewPoolCheckReader(client)
	}
	report := poolcheck.Evaluate(poolcheck.Observe(readCtx, reader, target))
	r.Checks = report.Checks
	if p.Key == nil { // the check was not requested
		r.Checks = slices.DeleteFunc(r.Checks, func(c poolcheck.Check) bool { return c.Name == poolcheck.CheckVerifyingKey })
	}
	if p.flags.History > 0 {
		r.Checks = append(r.Checks, p.compare(ctx, client)...)
	}
	for _, payer := range payers {
		lamports, known := report.Balances[payer]
		r.Payers = append(r.Payers, p.payer(ctx, client, report.Slot, payer, lamports, known))
	}
	return r
}

// reader returns the client of the first healthy endpoint with the role read. Without one, it
// returns the first that reports a slot, even if it lags or serves another chain, so that the
// checks can still run. It returns nil when none answers.
func (p *probe) reader(endpoints []probedEndpoint) *rpc.Client {
	for _, acceptUnhealthy := range []bool{false, true} {
		for i := range endpoints {
			e := &endpoints[i]
			if slices.Contains(e.Roles, config.RoleRead) && (e.State == poolcheck.OK || acceptUnhealthy && e.Slot != nil) {
				return p.clients[i]
			}
		}
	}
	return nil
}

// compare checks profile and verifying key against the newest transactions of the first mint's
// tree.
func (p *probe) compare(ctx context.Context, client *rpc.Client) []poolcheck.Check {
	pools, err := poolcheck.Pools(p.Profile)
	if err != nil {
		return nil // another check reports it
	}
	var landed []poolcheck.Landed
	err = errNoEndpoint
	if client != nil {
		ctx, cancel := context.WithTimeout(ctx, p.flags.Timeout)
		defer cancel()
		landed, err = client.Landed(ctx, pools[0].MerkleTree, p.flags.History, func(all []poolcheck.Landed) bool {
			return !slices.ContainsFunc(poolcheck.Compare(pools[0], all), func(c poolcheck.Check) bool { return c.State == poolcheck.Unknown })
		})
	}
	checks := poolcheck.Compare(pools[0], landed)
	if p.Key != nil {
		checks = append(checks, poolcheck.CompareProof(pools[0], p.Key, landed))
	}
	for i := range checks {
		if checks[i].State == poolcheck.Unknown && err != nil {
			checks[i].Found, checks[i].Remedy = "the tree's history could not be read: "+err.Error(), "use an endpoint that serves histories"
		}
	}
	return checks
}
