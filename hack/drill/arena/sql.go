package arena

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/drill/account"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// All that the drill knows of the relay's schema stands here.
const (
	cutConnectionsSQL = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`

	countsSQL = `SELECT count(*), count(*) FILTER (WHERE state = 'completed'), count(*) FILTER (WHERE state = 'failed') FROM submissions`

	openSQL = `SELECT count(*) FILTER (WHERE state IN ('pending', 'processing')),
		count(*) FILTER (WHERE state = 'completed' AND NOT finalized) FROM submissions
		WHERE state IN ('pending', 'processing') OR state = 'completed' AND NOT finalized`

	submissionsSQL = `SELECT id, state, coalesce(error_code, ''), finalized, rolled_back, signature, public_inputs, recipient, created_at, completed_at
		FROM submissions JOIN requests ON submission_id = id`

	attemptsSQL = `SELECT signature, submission_id, fee_payer FROM attempts`

	ledgerOpeningSQL = `SELECT opening FROM ledger_cursors WHERE payer = $1`

	ledgerSQL = `SELECT signature, payer, kind, fee, priority_fee, rent, other, received FROM ledger`
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

// open counts the submissions without an outcome and those whose outcome is not
// final.
func (d *database) open(ctx context.Context) (working, unfinalized int, err error) {
	err = d.with(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, openSQL).Scan(&working, &unfinalized)
	})
	return working, unfinalized, err
}

// counts are all submissions, the completed and the failed ones.
func (d *database) counts(ctx context.Context) (all, completed, failed int, err error) {
	err = d.with(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, countsSQL).Scan(&all, &completed, &failed)
	})
	return all, completed, failed, err
}

// gather reads every row that the accountant holds against the chain.
func (d *database) gather(ctx context.Context, e *account.Evidence) error {
	return d.with(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, submissionsSQL)
		if err != nil {
			return fmt.Errorf("read submissions: %w", err)
		}
		if e.Submissions, err = pgx.CollectRows(rows, scanSubmission); err != nil {
			return fmt.Errorf("read submissions: %w", err)
		}
		if rows, err = conn.Query(ctx, attemptsSQL); err != nil {
			return fmt.Errorf("read attempts: %w", err)
		}
		e.Attempts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (account.Attempt, error) {
			var signature, payer []byte
			var a account.Attempt
			err := row.Scan(&signature, &a.Submission, &payer)
			a.Signature, a.Payer = solana.SignatureFromBytes(signature), solana.PublicKeyFromBytes(payer)
			return a, err
		})
		if err != nil {
			return fmt.Errorf("read attempts: %w", err)
		}
		if rows, err = conn.Query(ctx, ledgerSQL); err != nil {
			return fmt.Errorf("read the ledger: %w", err)
		}
		e.Entries, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (account.Entry, error) {
			var signature, payer []byte
			var entry account.Entry
			err := row.Scan(&signature, &payer, &entry.Kind, &entry.Fee, &entry.Priority, &entry.Rent, &entry.Other, &entry.Received)
			entry.Signature, entry.Payer = solana.SignatureFromBytes(signature), solana.PublicKeyFromBytes(payer)
			return entry, err
		})
		if err != nil {
			return fmt.Errorf("read the ledger: %w", err)
		}
		return nil
	})
}

// ledgerOpening is what the ledger says that a payer held before its first
// transaction; 0 when the ledger does not know the payer.
func (d *database) ledgerOpening(ctx context.Context, payer solana.PublicKey) (lamports uint64, err error) {
	err = d.with(ctx, func(conn *pgx.Conn) error {
		err := conn.QueryRow(ctx, ledgerOpeningSQL, payer.Bytes()).Scan(&lamports)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return lamports, err
}

func scanSubmission(row pgx.CollectableRow) (account.Submission, error) {
	var (
		s                            account.Submission
		id                           uuid.UUID
		signature, inputs, recipient []byte
		completed                    *time.Time
	)
	if err := row.Scan(&id, &s.State, &s.Code, &s.Finalized, &s.RolledBack, &signature, &inputs, &recipient, &s.CreatedAt, &completed); err != nil {
		return s, err
	}
	s.ID = id
	if signature != nil {
		s.Signature = solana.SignatureFromBytes(signature)
	}
	if recipient != nil {
		s.Recipient = solana.PublicKeyFromBytes(recipient)
	}
	if completed != nil {
		s.CompletedAt = *completed
	}
	parsed, err := shieldpool.ParsePublicInputs(inputs)
	if err != nil {
		return s, fmt.Errorf("parse the public inputs of request %s: %w", id, err)
	}
	s.Inputs = *parsed
	return s, nil
}
