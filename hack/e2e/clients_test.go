package e2e

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/dev/tour"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// clients walks through a wallet's life with real proofs; the tour checks every
// figure that it prints against the chain.
func (s *suite) clients(t *testing.T) {
	prover, err := wallet.StartProver(s.ctx, wallet.Options{Progress: t.Output()})
	ok(t, err)
	defer func() { ok(t, prover.Close()) }()
	s.log(t, "the prover has its keys")
	pods := s.fleet.awaitPods(t, "serves", nil)
	payers, _ := s.fleet.payers(t)
	if len(pods) != 1 || len(payers) != 1 {
		t.Fatalf("the tour needs one relay with one payer, but there are %d and %d", len(pods), len(payers))
	}
	path := filepath.Join(folder, "tour.txt")
	file, err := os.Create(path)
	ok(t, err)
	defer func() { ok(t, file.Close()) }()
	recorded := &recorder{next: s.stage.HTTP.Transport}
	err = tour.Run(s.ctx, tour.Options{
		RelayURL: s.stage.fleetURL(fleetName), OperationsURL: operationsURL(&pods[0]), ChainURL: s.stage.rpcURL(),
		RouterURL: s.stage.routerURL(), AdminURL: s.stage.adminURL(), OutputMint: localnet.OutputMint(),
		HTTP: &http.Client{Transport: recorded}, Profile: s.stage.Profile, FeePayer: payers[0], Prover: prover,
		Print: terminal.New(file, terminal.Style{}), Random: rand.Reader, Now: time.Now,
	})
	s.others = append(s.others, recorded.records()...)
	if err != nil {
		t.Fatalf("%v; %s has the steps before this error", err, path)
	}
	if len(recorded.records()) == 0 {
		t.Fatal("none of the tour's requests was recorded: logs cannot be searched for their content")
	}
	s.log(t, "2 withdrawals, 1 transfer, 1 swap executed and 1 refunded, 4 refusals, each figure checked; they are in %s; %d requests are recorded for the search in logs", path, len(recorded.records()))
}

// recorder passes requests on and records the submissions in them, for a client without a
// journal.
type recorder struct {
	next http.RoundTripper

	mu   sync.Mutex
	seen []load.Record
}

// RoundTrip implements http.RoundTripper.
func (o *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			o.record(body)
		}
	}
	return o.next.RoundTrip(r)
}

// record records a submission; other bodies have no proof of the right length.
func (o *recorder) record(body io.ReadCloser) {
	defer func() { _ = body.Close() }() // it is in memory
	var sent struct {
		Proof     []byte   `json:"proof_bytes"`
		Inputs    []byte   `json:"public_inputs"`
		Recipient string   `json:"recipient"`
		Account   string   `json:"recipient_ata"`
		Notes     [][]byte `json:"encrypted_notes"`
	}
	if err := json.NewDecoder(body).Decode(&sent); err != nil || len(sent.Proof) != shieldpool.ProofLength {
		return
	}
	inputs, err := shieldpool.ParsePublicInputs(sent.Inputs)
	if err != nil {
		return
	}
	q := load.Request{Inputs: *inputs, Proofs: [][shieldpool.ProofLength]byte{[shieldpool.ProofLength]byte(sent.Proof)}, Notes: sent.Notes}
	if key, err := solana.PublicKeyFromBase58(sent.Recipient); err == nil {
		q.Recipient = key
	}
	if key, err := solana.PublicKeyFromBase58(sent.Account); err == nil {
		q.Swap = &load.Swap{Terms: shieldpool.SwapTerms{RecipientATA: key}}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, load.Record{Number: len(o.seen), Requests: []load.Request{q}})
}

func (o *recorder) records() []load.Record {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.seen)
}
