package suite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/dev/tour"
	"github.com/relaypool/relaypool/hack/e2e/report"
	"github.com/relaypool/relaypool/hack/localnet"
)

// clients walks through a wallet's life with real proofs; the tour checks every
// figure that it prints against the chain.
func (s *suite) clients(ctx context.Context, r *report.Scenario) (err error) {
	pods, err := s.fleet.settled(ctx, "serves", anyPod)
	if err != nil {
		return err
	}
	payers, _, err := s.fleet.payers(ctx)
	if err != nil {
		return err
	}
	if len(pods) != 1 || len(payers) != 1 {
		return fmt.Errorf("the tour is of one relay with one payer, and there are %d and %d", len(pods), len(payers))
	}
	path := filepath.Join(s.Folder, "tour.txt")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep what the tour prints: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	ear := &overheard{next: s.stage.HTTP.Transport}
	with := *s.stage.HTTP
	with.Transport = ear
	defer func() { s.others = append(s.others, ear.records()...) }()
	if err := tour.Run(ctx, tour.Options{
		RelayURL: s.stage.FleetURL(fleetName), OperationsURL: operationsURL(&pods[0]), ChainURL: s.stage.RPCURL(),
		RouterURL: s.stage.RouterURL(), AdminURL: s.stage.AdminURL(), OutputMint: localnet.OutputMint(),
		HTTP: &with, Profile: s.stage.Chain.Profile, FeePayer: payers[0], Prover: s.Prover,
		Print: terminal.New(file, terminal.Style{}), Random: rand.Reader, Now: s.Now,
	}); err != nil {
		return fmt.Errorf("%w; %s has the steps before it", err, path)
	}
	heard := len(ear.records())
	if heard == 0 {
		return errors.New("none of the tour's requests was heard: nothing of them could be searched for in logs")
	}
	r.Saw("deposit, withdrawals, refusals, transfer, swap and refund, each figure checked; %s has them, and %d requests are kept to be searched for", path, heard)
	r.Sum("2 withdrawals, 1 transfer, 1 swap executed and 1 refunded, 4 refusals")
	return nil
}
