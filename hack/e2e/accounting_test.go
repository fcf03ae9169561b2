package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"

	"github.com/relaypool/relaypool/hack/drill/canary"
	"github.com/relaypool/relaypool/hack/drill/gather"
	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// maxFaults bounds the faults that are reported for one claim.
	maxFaults = 5
	// minFinal is the number of outcomes that make an accounting meaningful.
	minFinal = 30
	// answerWithin bounds a request to a fleet.
	answerWithin = 20 * time.Second
	// swapGrace is the number of slots after its timeout within which a swap must be closed:
	// two lost transactions have to expire first, while pods come and go.
	swapGrace = 2*(150+32) + 200
)

// accounting ends the load and checks every claim of package verify against the answers
// to clients, the database and the chain.
func (s *suite) accounting(t *testing.T) {
	s.startTraffic(t, calmRate)
	// Without a swap and a withdrawal the claims about them would be untested.
	s.await(t, "clients have had some outcomes", 5*time.Minute, func(context.Context) error {
		if p := s.traffic.progress(); p.Finalized < minFinal || p.Refunded == 0 {
			return errors.New(s.traffic.String())
		}
		return nil
	})
	s.traffic.finish(6 * time.Minute)
	s.log(t, "%s", s.traffic)
	records := s.traffic.Journal().Records()
	s.fleet.awaitFinal(t)
	s.log(t, "every outcome is final")
	s.fleet.awaitMetrics(t)
	fault := s.ledgerFault(fleetName)
	e := s.fleet.gather(t, records)
	e.LedgerFault, e.Vault.Opening = fault, s.vault
	s.searchLeaks(t, e)
	all := results(e)
	for i := range all {
		mark := "holds "
		if !all[i].Passed() {
			mark = "FAILED"
		}
		s.log(t, "%s  %-28s %s (%d examined)", mark, all[i].Name, all[i].Claim, all[i].Examined)
	}
	ok(t, errors.Join(verdict(all), servedAll(s.services, records), s.fleets.lostLogs()))
	s.log(t, "%d submissions, %d transactions on the chain, %d payers: %d claims hold", len(e.Submissions), len(e.Transactions), len(e.Payers), len(all))
}

// results checks every claim against the evidence, or only the named ones.
func results(e *verify.Evidence, only ...string) (all []verify.Result) {
	for _, check := range verify.Checks() {
		if len(only) == 0 || slices.Contains(only, check.Name) {
			all = append(all, check.Run(e))
		}
	}
	return all
}

// verdict returns an error that names the claims that do not hold.
func verdict(results []verify.Result) error {
	var errs []error
	for i := range results {
		c := &results[i]
		if c.Passed() {
			continue
		}
		faults := c.Faults
		if c.Vacuous {
			faults = append(faults, "there was nothing to examine")
		}
		if len(faults) > maxFaults {
			faults = append(faults[:maxFaults:maxFaults], fmt.Sprintf("and %d more", len(faults)-maxFaults))
		}
		errs = append(errs, fmt.Errorf("%s does not hold: %s", c.Name, strings.Join(faults, "; ")))
	}
	return errors.Join(errs...)
}

// ledgerFault runs the relay's own command in a pod, as its user would, to update a fleet's
// ledger to the chain. It returns the discrepancies that the command reports.
func (s *suite) ledgerFault(fleet string) string {
	pod := restrictedPod("ledger-"+fleet, s.images.relay, "ledger", "--database-url-file=/etc/database/"+urlKey, "--rpc-url="+s.stage.rpcURL())
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "database", MountPath: "/etc/database", ReadOnly: true}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "database", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: fleet + "-database"},
	}}}
	if _, err := s.runToEnd(pod); err != nil {
		return err.Error()
	}
	return ""
}

// awaitFinal waits until every submission's outcome is final.
func (f *fleet) awaitFinal(t *testing.T) {
	t.Helper()
	f.await(t, "every outcome is final", 6*time.Minute, func(ctx context.Context) error {
		return f.stage.withDatabase(ctx, f.database, func(conn *pgx.Conn) error {
			working, unfinalized, err := gather.Open(ctx, conn)
			if err == nil && working+unfinalized > 0 {
				return fmt.Errorf("%d submissions have no outcome and %d are not finalized", working, unfinalized)
			}
			return err
		})
	})
}

// gather reads the rows of the database of quiet fleets, asks the fleet for the status of its
// swaps, and reads the finalized chain.
func (f *fleet) gather(t *testing.T, records []load.Record, others ...*fleet) *verify.Evidence {
	t.Helper()
	e := &verify.Evidence{
		Fees: f.stage.Profile.Fees, SwapTimeout: f.stage.Profile.SwapTimeout, SwapGrace: swapGrace,
		Records: records, SwapAnswers: make(map[uuid.UUID]verify.SwapStatus), ProofAEncoding: groth16.Plain.String(), // the encoding that the local chain's program accepts
	}
	keys, _ := f.payers(t)
	for _, other := range others {
		theirs, _ := other.payers(t)
		keys = append(keys, theirs...)
	}
	ok(t, f.stage.withDatabase(f.ctx, f.database, func(conn *pgx.Conn) error {
		err := gather.Rows(f.ctx, conn, e)
		ids, listErr := gather.Swaps(f.ctx, conn)
		bounded := *f.stage.HTTP
		bounded.Timeout = time.Minute
		for _, id := range ids {
			e.SwapAnswers[id] = gather.SwapStatus(f.ctx, &bounded, f.stage.fleetURL(f.name), id)
		}
		for _, key := range keys {
			opening, readErr := gather.LedgerOpening(f.ctx, conn, key)
			e.Payers = append(e.Payers, verify.Payer{Key: key, Funded: f.stage.sent[key], LedgerOpening: opening})
			err = errors.Join(err, readErr)
		}
		return errors.Join(err, listErr)
	}))
	reader := gather.NewChain(f.stage.RPC, f.stage.Pool)
	for _, key := range keys {
		reader.Payers[key] = true
	}
	last, err := f.stage.RPC.GetSlot(f.ctx, rpc.CommitmentFinalized)
	ok(t, err)
	e.Transactions, err = reader.Transactions(f.ctx, last)
	ok(t, err)
	for i := range e.Transactions {
		e.Transactions[i].Rent = shieldpool.Rent(bank.DefaultRent) // the suite's chain never changes it
	}
	for i := range e.Payers {
		e.Payers[i].Closing, err = reader.Balance(f.ctx, e.Payers[i].Key)
		ok(t, err)
	}
	ok(t, reader.FindLeftAccounts(f.ctx, f.stage.Market.VaultSOL, e))
	return e
}

// searchLeaks looks for the content of every request in the logs and metrics of all
// relays.
func (s *suite) searchLeaks(t *testing.T, e *verify.Evidence) {
	t.Helper()
	set := gather.Canaries(slices.Concat(e.Records, s.others))
	for source, page := range s.pages {
		ok(t, searchLeaks(e, set, source, bytes.NewReader(page)))
	}
	paths, err := filepath.Glob(filepath.Join(s.fleets.folder, "*.log"))
	ok(t, err)
	for _, path := range paths {
		file, err := os.Open(path)
		ok(t, err)
		ok(t, errors.Join(searchLeaks(e, set, filepath.Base(path), file), file.Close()))
	}
}

func searchLeaks(e *verify.Evidence, set *canary.Set, source string, text io.Reader) error {
	hits, read, err := set.Search(text)
	e.Scanned += read
	for _, hit := range hits {
		e.Leaks = append(e.Leaks, verify.Leak{Source: source, Line: hit.Line, What: hit.Name})
	}
	return err
}

// awaitMetrics waits until every pod of a fleet has returned its metrics, because a pod may
// have just been added.
func (f *fleet) awaitMetrics(t *testing.T) {
	t.Helper()
	f.await(t, "every pod of "+f.name+" shows its metrics", 3*time.Minute, f.keepMetrics)
}

// keepMetrics adds the metrics of a fleet's pods to the pages.
func (f *fleet) keepMetrics(ctx context.Context) error {
	pods, err := f.pods(ctx)
	for i := range pods {
		page, readErr := f.readMetrics(ctx, &pods[i])
		if err = errors.Join(err, readErr); readErr == nil {
			f.pages[fmt.Sprintf("metrics of %s after %d restarts", pods[i].Name, restarts(&pods[i]))] = page
		}
	}
	return err
}

// keepPages stores the metrics of pods that may be gone at the end. It leaves out a pod that
// does not answer: at the end, all pods that must answer are asked.
func (s *suite) keepPages() {
	if s.fleet == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	_ = s.fleet.keepMetrics(ctx)
}

// readMetrics reads the metrics of a relay.
func (s *suite) readMetrics(ctx context.Context, pod *corev1.Pod) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, operationsURL(pod)+contract.MetricsPath, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := s.stage.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // the body was read to its end
	page, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the metrics of %s answer %s", pod.Name, answer.Status)
	}
	return page, err
}
