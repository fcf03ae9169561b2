package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/e2e/books"
	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// overheard passes requests on and remembers what is in those to a relay, of a
// client that keeps no journal.
type overheard struct {
	next http.RoundTripper

	mu   sync.Mutex
	seen []load.Record
}

// RoundTrip implements http.RoundTripper.
func (o *overheard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			o.hear(body)
		}
	}
	return o.next.RoundTrip(r)
}

// hear remembers a submission; other bodies are not to be told from each other,
// and hold none.
func (o *overheard) hear(body io.ReadCloser) {
	defer func() { _ = body.Close() }() // it is in memory
	var said struct {
		Proof     []byte   `json:"proof_bytes"`
		Inputs    []byte   `json:"public_inputs"`
		Recipient string   `json:"recipient"`
		Account   string   `json:"recipient_ata"`
		Notes     [][]byte `json:"encrypted_notes"`
	}
	if err := json.NewDecoder(body).Decode(&said); err != nil || len(said.Proof) != shieldpool.ProofLength {
		return
	}
	inputs, err := shieldpool.ParsePublicInputs(said.Inputs)
	if err != nil {
		return
	}
	q := load.Request{Inputs: *inputs, Proofs: [][shieldpool.ProofLength]byte{[shieldpool.ProofLength]byte(said.Proof)}, Notes: said.Notes}
	if key, err := solana.PublicKeyFromBase58(said.Recipient); err == nil {
		q.Recipient = key
	}
	if key, err := solana.PublicKeyFromBase58(said.Account); err == nil {
		q.Swap = &load.Swap{Terms: shieldpool.SwapTerms{RecipientATA: key}}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, load.Record{Number: len(o.seen), Requests: []load.Request{q}})
}

func (o *overheard) records() []load.Record {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.seen)
}

// allMetrics waits until every pod of a fleet has given its page: one may have
// just been added.
func (s *suite) allMetrics(ctx context.Context, f *fleet) error {
	return cluster.Await(ctx, "every pod of "+f.name+" shows its metrics", cluster.Minutes(3), func(ctx context.Context) (string, error) {
		return "", s.metrics(ctx, f, s.pages)
	})
}

// metrics adds the pages of a fleet's pods to others.
func (s *suite) metrics(ctx context.Context, f *fleet, pages map[string][]byte) error {
	pods, err := f.pods(ctx)
	if err != nil {
		return err
	}
	for i := range pods {
		page, err := books.Page(ctx, s.stage.HTTP, operationsURL(&pods[i])+contract.MetricsPath)
		if err != nil {
			return err
		}
		pages[fmt.Sprintf("metrics of %s after %d restarts", pods[i].Name, restarts(&pods[i]))] = page
	}
	return nil
}

// keepWithin is how long the pages may take that are kept on the way.
const keepWithin = 10 * time.Second

// keepPages keeps what pods say now that may be gone at the end. One that does
// not answer at this moment is left out: those that must answer are asked at the end.
func (s *suite) keepPages(ctx context.Context) {
	if s.fleet == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, keepWithin)
	defer cancel()
	_ = s.metrics(ctx, s.fleet, s.pages)
}

// complete holds that every relay's log is there to be searched.
func complete(lost []cluster.LostLog) error {
	var errs []error
	for _, l := range lost {
		if l.Container == relayContainer {
			errs = append(errs, fmt.Errorf("the log of the relay of pod %s was not kept, and could not be searched: %w", l.Pod, l.Err))
		}
	}
	return errors.Join(errs...)
}
