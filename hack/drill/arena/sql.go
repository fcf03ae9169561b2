package arena

import (
	"context"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/drill/account"
	"github.com/relaypool/relaypool/hack/drill/timeline"
	"github.com/relaypool/relaypool/hack/drill/witness"
)

// What the drill itself asks the relays' database; package witness has the rest.
const (
	cutConnectionsSQL = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`

	countsSQL = `SELECT count(*), count(*) FILTER (WHERE state = 'completed'), count(*) FILTER (WHERE state = 'failed'),
		(SELECT count(*) FROM swaps WHERE phase NOT IN ('executed', 'refunded') AND NOT ended),
		(SELECT count(*) FROM swaps WHERE phase = 'executed'), (SELECT count(*) FROM swaps WHERE phase = 'refunded')
		FROM submissions WHERE parent IS NULL`
)

// cutConnections ends every connection but its own. While the server is away,
// or comes back, there is nothing to cut.
func (d *database) cutConnections(ctx context.Context) (cut int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.up {
		return 0, nil
	}
	err = d.with(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, cutConnectionsSQL).Scan(&cut)
	})
	return cut, err
}

// counts puts into a sample all submissions, the completed and the failed ones,
// and where swaps are.
func (d *database) counts(ctx context.Context, s *timeline.Sample) error {
	return d.with(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, countsSQL).Scan(&s.Accepted, &s.Completed, &s.Failed, &s.Between, &s.Executed, &s.Refunded)
	})
}

// open counts the submissions without an outcome and those whose outcome is not
// final.
func (d *database) open(ctx context.Context) (working, unfinalized int, err error) {
	err = d.with(ctx, func(conn *pgx.Conn) error {
		working, unfinalized, err = witness.Open(ctx, conn)
		return err
	})
	return working, unfinalized, err
}

// swaps lists the first legs of all swaps.
func (d *database) swaps(ctx context.Context) (ids []uuid.UUID, err error) {
	err = d.with(ctx, func(conn *pgx.Conn) error {
		ids, err = witness.Swaps(ctx, conn)
		return err
	})
	return ids, err
}

// gather reads every row that the accountant holds against the chain.
func (d *database) gather(ctx context.Context, e *account.Evidence) error {
	return d.with(ctx, func(conn *pgx.Conn) error { return witness.Rows(ctx, conn, e) })
}

// ledgerOpening is what the ledger says that a payer held before its first
// transaction; 0 when the ledger does not know the payer.
func (d *database) ledgerOpening(ctx context.Context, payer solana.PublicKey) (lamports uint64, err error) {
	err = d.with(ctx, func(conn *pgx.Conn) error {
		lamports, err = witness.LedgerOpening(ctx, conn, payer)
		return err
	})
	return lamports, err
}
