// Package books holds what clients were told against the database and the chain
// of a cluster, by the drill's accountant.
package books

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
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/drill/account"
	"github.com/relaypool/relaypool/hack/drill/canary"
	"github.com/relaypool/relaypool/hack/drill/witness"
	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/stage"
	"github.com/relaypool/relaypool/hack/load"
)

// Fleet is whose books are closed. All are required but Others, Logs and Pages.
type Fleet struct {
	Stage *stage.Stage
	// Name is the RelayPool's, Database its database's.
	Name, Database string
	// Payers are all keys that ever paid.
	Payers []solana.PublicKey
	// Vault is what the market's account of wrapped SOL held at first, in lamports.
	Vault uint64
	// Records are what clients were told.
	Records []load.Record
	// Others are what clients sent to other relays, or in other ways, whose logs and
	// pages are here as well: nothing of it may be shown, either.
	Others []load.Record
	// LedgerFault is what relay ledger says against its own ledger; empty for nothing.
	LedgerFault string
	// Logs is the folder of the pods' logs, and Pages are their metrics by a name.
	Logs  string
	Pages map[string][]byte
}

const (
	// quietWithin is how long outcomes may take to be final after the load.
	quietWithin = 6 * time.Minute
	// swapGrace is how many slots after its timeout a swap has to be gone: two
	// transactions that got lost have to die first, and pods come and go meanwhile.
	swapGrace = 2*(150+32) + 200
)

// AwaitQuiet waits until every submission's outcome is final.
func (f *Fleet) AwaitQuiet(ctx context.Context) error {
	return cluster.Await(ctx, "every outcome is final", quietWithin, func(ctx context.Context) (string, error) {
		var working, unfinalized int
		err := f.Stage.WithDatabase(ctx, f.Database, func(conn *pgx.Conn) (err error) {
			working, unfinalized, err = witness.Open(ctx, conn)
			return err
		})
		if err == nil && working+unfinalized > 0 {
			return fmt.Sprintf("%d have no outcome and %d are not finalized", working, unfinalized), nil
		}
		return "", err
	})
}

// Close gathers the evidence and holds every claim against it, or those alone
// that are named. The fleet must be quiet.
func (f *Fleet) Close(ctx context.Context, only ...string) (*account.Evidence, []account.Result, error) {
	e := &account.Evidence{
		Fees: f.Stage.Chain.Profile.Fees, SwapTimeout: f.Stage.Chain.Profile.SwapTimeout, SwapGrace: swapGrace,
		Records: f.Records, LedgerFault: f.LedgerFault, Vault: account.Vault{Opening: f.Vault},
	}
	if err := f.Stage.WithDatabase(ctx, f.Database, func(conn *pgx.Conn) error { return f.read(ctx, conn, e) }); err != nil {
		return nil, nil, err
	}
	if err := f.chain(ctx, e); err != nil {
		return nil, nil, err
	}
	if err := f.search(e); err != nil {
		return nil, nil, err
	}
	var results []account.Result
	for _, check := range account.Checks() {
		if len(only) == 0 || slices.Contains(only, check.Name) {
			results = append(results, check.Run(e))
		}
	}
	return e, results, nil
}

// read takes in the database's rows, and asks the fleet for its swaps.
func (f *Fleet) read(ctx context.Context, conn *pgx.Conn, e *account.Evidence) error {
	if err := witness.Rows(ctx, conn, e); err != nil {
		return err
	}
	ids, err := witness.Swaps(ctx, conn)
	if err != nil {
		return fmt.Errorf("list swaps: %w", err)
	}
	client := *f.Stage.HTTP
	client.Timeout = time.Minute
	e.Told = make(map[uuid.UUID]account.SwapStatus, len(ids))
	for _, id := range ids {
		e.Told[id] = witness.SwapStatus(ctx, &client, f.Stage.FleetURL(f.Name), id)
	}
	for _, key := range f.Payers {
		payer := account.Payer{Key: key, Funded: f.Stage.Chain.Sent(key)}
		if payer.LedgerOpening, err = witness.LedgerOpening(ctx, conn, key); err != nil {
			return fmt.Errorf("read the ledger's opening balances: %w", err)
		}
		e.Payers = append(e.Payers, payer)
	}
	return nil
}

// chain takes in the finalized chain.
func (f *Fleet) chain(ctx context.Context, e *account.Evidence) error {
	c := f.Stage.Chain
	eyes := witness.NewChain(c.RPC, c.Pool)
	for _, key := range f.Payers {
		eyes.Payers[key] = true
	}
	last, err := c.RPC.GetSlot(ctx, rpc.CommitmentFinalized)
	if err != nil {
		return fmt.Errorf("read the finalized slot: %w", err)
	}
	if e.Transactions, err = eyes.Transactions(ctx, last); err != nil {
		return err
	}
	for i := range e.Payers {
		if e.Payers[i].Closing, err = eyes.Balance(ctx, e.Payers[i].Key); err != nil {
			return err
		}
	}
	return eyes.Left(ctx, c.Market.VaultSOL, e)
}

// search looks for the content of every request in logs and metrics.
func (f *Fleet) search(e *account.Evidence) error {
	set := witness.Canaries(slices.Concat(e.Records, f.Others))
	for source, page := range f.Pages {
		hits, read, err := set.Search(bytes.NewReader(page))
		if err != nil {
			return fmt.Errorf("search %s: %w", source, err)
		}
		take(e, source, hits, read)
	}
	paths, err := filepath.Glob(filepath.Join(f.Logs, "*.log"))
	if err != nil {
		return fmt.Errorf("list logs: %w", err)
	}
	for _, path := range paths {
		if err := searchFile(e, set, path); err != nil {
			return err
		}
	}
	return nil
}

func searchFile(e *account.Evidence, set *canary.Set, path string) (err error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return fmt.Errorf("search logs: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hits, read, err := set.Search(file)
	if err != nil {
		return fmt.Errorf("search %s: %w", path, err)
	}
	take(e, filepath.Base(path), hits, read)
	return nil
}

func take(e *account.Evidence, source string, hits []canary.Hit, read int64) {
	e.Scanned += read
	for _, hit := range hits {
		e.Leaks = append(e.Leaks, account.Leak{Source: source, Line: hit.Line, What: hit.Name})
	}
}

// Page reads a page of metrics.
func Page(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", url, err)
	}
	defer func() { _ = answer.Body.Close() }() // read to its end
	page, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return page, err
}
