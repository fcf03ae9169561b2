package arena

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/drill/account"
	"github.com/relaypool/relaypool/hack/drill/timeline"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// All that the drill knows of the relay's schema stands here.
const (
	cutConnectionsSQL = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`

	countsSQL = `SELECT count(*), count(*) FILTER (WHERE state = 'completed'), count(*) FILTER (WHERE state = 'failed'),
		(SELECT count(*) FROM swaps WHERE phase NOT IN ('executed', 'refunded') AND NOT ended),
		(SELECT count(*) FROM swaps WHERE phase = 'executed'), (SELECT count(*) FROM swaps WHERE phase = 'refunded')
		FROM submissions WHERE parent IS NULL`

	openSQL = `SELECT count(*) FILTER (WHERE state IN ('pending', 'processing')),
		count(*) FILTER (WHERE state = 'completed' AND NOT finalized) FROM submissions
		WHERE state IN ('pending', 'processing') OR state = 'completed' AND NOT finalized`

	submissionsSQL = `SELECT id, kind, state, coalesce(error_code, ''), finalized, rolled_back, signature, public_inputs, recipient, swap_terms, created_at, completed_at
		FROM submissions JOIN requests ON submission_id = id`

	swapsSQL = `SELECT id FROM submissions WHERE kind = 'swap' ORDER BY id`

	settlementsSQL = `SELECT s.id, parent, state, coalesce(error_code, ''), finalized, signature, phase, timeout_slot, ended, s.created_at, completed_at
		FROM submissions s LEFT JOIN swaps w ON w.id = s.id WHERE kind = 'settlement'`

	attemptsSQL = `SELECT signature, submission_id, fee_payer, purpose FROM attempts`

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

// counts puts into a sample all submissions, the completed and the failed ones,
// and where swaps are.
func (d *database) counts(ctx context.Context, s *timeline.Sample) error {
	return d.with(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, countsSQL).Scan(&s.Accepted, &s.Completed, &s.Failed, &s.Between, &s.Executed, &s.Refunded)
	})
}

// swaps lists the first legs of all swaps.
func (d *database) swaps(ctx context.Context) (ids []uuid.UUID, err error) {
	err = d.with(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, swapsSQL)
		if err != nil {
			return err
		}
		ids, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	return ids, err
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
		if rows, err = conn.Query(ctx, settlementsSQL); err != nil {
			return fmt.Errorf("read settlements: %w", err)
		}
		if e.Settlements, err = pgx.CollectRows(rows, scanSettlement); err != nil {
			return fmt.Errorf("read settlements: %w", err)
		}
		if rows, err = conn.Query(ctx, attemptsSQL); err != nil {
			return fmt.Errorf("read attempts: %w", err)
		}
		e.Attempts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (account.Attempt, error) {
			var signature, payer []byte
			var a account.Attempt
			err := row.Scan(&signature, &a.Submission, &payer, &a.Purpose)
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
		s                                   account.Submission
		id                                  uuid.UUID
		signature, inputs, recipient, terms []byte
		completed                           *time.Time
	)
	if err := row.Scan(&id, &s.Kind, &s.State, &s.Code, &s.Finalized, &s.RolledBack, &signature, &inputs, &recipient, &terms, &s.CreatedAt, &completed); err != nil {
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
	s.Swap = swapTerms(terms)
	return s, nil
}

// swapTerms decodes a swap's terms; nil of what is none.
func swapTerms(b []byte) *shieldpool.SwapTerms {
	if len(b) != 72 {
		return nil
	}
	return &shieldpool.SwapTerms{
		OutputMint: solana.PublicKeyFromBytes(b[:32]), RecipientATA: solana.PublicKeyFromBytes(b[32:64]),
		MinOutput: binary.LittleEndian.Uint64(b[64:]),
	}
}

func scanSettlement(row pgx.CollectableRow) (account.Settlement, error) {
	var (
		s         account.Settlement
		signature []byte
		phase     *string
		timeout   *uint64
		ended     *bool
		completed *time.Time
	)
	if err := row.Scan(&s.ID, &s.Swap, &s.State, &s.Code, &s.Finalized, &signature, &phase, &timeout, &ended, &s.CreatedAt, &completed); err != nil {
		return s, err
	}
	if signature != nil {
		s.Signature = solana.SignatureFromBytes(signature)
	}
	if phase != nil { // the row of every settlement has one beside it, but a drill believes nothing
		s.Phase, s.Timeout, s.Ended = *phase, *timeout, *ended
	}
	if completed != nil {
		s.CompletedAt = *completed
	}
	return s, nil
}
