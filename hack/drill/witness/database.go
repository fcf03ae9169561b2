// Package witness reads what database, chain and relays say once all is quiet,
// for the accountant of package account.
package witness

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
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// All that the accountant knows of the relay's schema stands here.
const (
	openSQL = `SELECT count(*) FILTER (WHERE state IN ('pending', 'processing')),
		count(*) FILTER (WHERE state = 'completed' AND NOT finalized) FROM submissions
		WHERE state IN ('pending', 'processing') OR state = 'completed' AND NOT finalized`

	submissionsSQL = `SELECT id, kind, state, coalesce(error_code, ''), finalized, rolled_back, signature, public_inputs, recipient, swap_terms, created_at, completed_at
		FROM submissions JOIN requests ON submission_id = id`

	swapsSQL = `SELECT id FROM submissions WHERE kind = 'swap' ORDER BY id`

	settlementsSQL = `SELECT s.id, parent, state, coalesce(error_code, ''), finalized, signature, phase, timeout_slot, ended, s.created_at, completed_at
		FROM submissions s LEFT JOIN swaps w ON w.id = s.id WHERE kind = 'settlement'`

	attemptsSQL = `SELECT signature, submission_id, fee_payer, purpose, blockhash, created_at FROM attempts`

	ledgerOpeningSQL = `SELECT opening FROM ledger_cursors WHERE payer = $1`

	movesSQL = `SELECT signature, payer, recipients, lamports FROM sweeps`

	pinsSQL = `SELECT sign FROM proof_signs`

	ledgerSQL = `SELECT signature, payer, kind, fee, priority_fee, rent, other, received, moved FROM ledger`
)

// Open counts the submissions without an outcome and those whose outcome is not
// final.
func Open(ctx context.Context, conn *pgx.Conn) (working, unfinalized int, err error) {
	err = conn.QueryRow(ctx, openSQL).Scan(&working, &unfinalized)
	return working, unfinalized, err
}

// Swaps lists the first legs of all swaps.
func Swaps(ctx context.Context, conn *pgx.Conn) (ids []uuid.UUID, err error) {
	rows, err := conn.Query(ctx, swapsSQL)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

// LedgerOpening is what the ledger says that a payer held before its first
// transaction; 0 when the ledger does not know the payer.
func LedgerOpening(ctx context.Context, conn *pgx.Conn, payer solana.PublicKey) (lamports uint64, err error) {
	err = conn.QueryRow(ctx, ledgerOpeningSQL, payer.Bytes()).Scan(&lamports)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return lamports, err
}

// Rows reads every row that the accountant holds against the chain.
func Rows(ctx context.Context, conn *pgx.Conn, e *account.Evidence) error {
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
		var signature, payer, blockhash []byte
		var a account.Attempt
		err := row.Scan(&signature, &a.Submission, &payer, &a.Purpose, &blockhash, &a.CreatedAt)
		a.Signature, a.Payer, a.Blockhash = solana.SignatureFromBytes(signature), solana.PublicKeyFromBytes(payer), solana.HashFromBytes(blockhash)
		return a, err
	})
	if err != nil {
		return fmt.Errorf("read attempts: %w", err)
	}
	if rows, err = conn.Query(ctx, pinsSQL); err != nil {
		return fmt.Errorf("read the proofs' sign: %w", err)
	}
	if e.Pins, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return fmt.Errorf("read the proofs' sign: %w", err)
	}
	if err := moves(ctx, conn, e); err != nil {
		return fmt.Errorf("read sweeps: %w", err)
	}
	if rows, err = conn.Query(ctx, ledgerSQL); err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	e.Entries, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (account.Entry, error) {
		var signature, payer []byte
		var entry account.Entry
		err := row.Scan(&signature, &payer, &entry.Kind, &entry.Fee, &entry.Priority, &entry.Rent, &entry.Other, &entry.Received, &entry.Moved)
		entry.Signature, entry.Payer = solana.SignatureFromBytes(signature), solana.PublicKeyFromBytes(payer)
		return entry, err
	})
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	return nil
}

// moves adds what relay sweep signed to the attempts.
func moves(ctx context.Context, conn *pgx.Conn, e *account.Evidence) error {
	rows, err := conn.Query(ctx, movesSQL)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (account.Attempt, error) {
		var signature, payer []byte
		var recipients [][]byte
		var lamports []int64
		if err := row.Scan(&signature, &payer, &recipients, &lamports); err != nil {
			return account.Attempt{}, err
		}
		a := account.Attempt{
			Signature: solana.SignatureFromBytes(signature), Payer: solana.PublicKeyFromBytes(payer),
			Purpose: account.PurposeMove, Moves: make(map[solana.PublicKey]uint64),
		}
		for i, recipient := range recipients {
			a.Moves[solana.PublicKeyFromBytes(recipient)] += uint64(lamports[i]) //nolint:gosec // the schema has them above zero
		}
		return a, nil
	})
	e.Attempts = append(e.Attempts, found...)
	return err
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
	s.Swap = SwapTerms(terms)
	return s, nil
}

// SwapTerms decodes the terms of a swap's row; nil of what is none.
func SwapTerms(b []byte) *shieldpool.SwapTerms {
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
