package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/dev/tour"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/sandbox"
	"github.com/relaypool/relaypool/relay/contract"
)

// tourCmd makes the tour with a relay that is already running, such as a fleet in a
// cluster with forwarded ports.
type tourCmd struct {
	Relay      string `default:"http://127.0.0.1:${relayPort}" placeholder:"URL" help:"The relay's interface."`
	Operations string `default:"http://127.0.0.1:${operationsPort}" placeholder:"URL" help:"Its operations port."`
	Chain      string `default:"http://127.0.0.1:${chainPort}" placeholder:"URL" help:"The local chain's JSON-RPC."`
	Router     string `default:"http://127.0.0.1:${routerPort}" placeholder:"URL" help:"The swap router over its market."`
	Admin      string `default:"http://127.0.0.1:${adminPort}" placeholder:"URL" help:"The local chain's admin interface."`
}

// Run makes the tour; the lamports and notes that it spends are not returned.
func (c *tourCmd) Run(s *session) error {
	trim := func(url string) string { return strings.TrimSuffix(url, "/") }
	payer, err := feePayer(s, trim(c.Operations)+contract.MetricsPath)
	if err != nil {
		return err
	}
	root, err := checkout(s)
	if err != nil {
		return err
	}
	prover, err := s.prover(root)
	if err != nil {
		return err
	}
	err = tour.Run(s, tour.Options{
		RelayURL: trim(c.Relay), OperationsURL: trim(c.Operations), ChainURL: trim(c.Chain), RouterURL: trim(c.Router), AdminURL: trim(c.Admin),
		OutputMint: localnet.OutputMint(), HTTP: http.DefaultClient, FeePayer: payer, Prover: prover, Print: s.print, Random: rand.Reader, Now: time.Now,
	})
	if err := errors.Join(err, prover.Close()); err != nil {
		return err
	}
	s.print.Title("All as expected")
	return nil
}

// feePayer is the relay's only fee payer, according to its metrics.
func feePayer(ctx context.Context, url string) (payer solana.PublicKey, err error) {
	page, err := sandbox.Get(ctx, url)
	if err != nil {
		return payer, fmt.Errorf("find the fee payer: %w; is the operations port of a relay there?", err)
	}
	sample := regexp.MustCompile(`(?m)^` + contract.MetricPayerUsable.Name + `\{payer="([1-9A-HJ-NP-Za-km-z]+)"\} 1$`)
	found := sample.FindAllSubmatch(page, -1)
	if len(found) != 1 {
		return payer, fmt.Errorf("find the fee payer: expected one usable fee payer at %s, received %d: the tour checks the balances of a relay with one funded key", url, len(found))
	}
	return solana.PublicKeyFromBase58(string(found[0][1]))
}
