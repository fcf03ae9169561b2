// Package gather reads the final state of database, chain and relays for the checks
// of package verify.
package gather

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// These statements read the relay's tables; package arena has a few more.
const (
	openSQL = `SELECT count(*) FILTER (WHERE state IN ('pending', 'processing')),
		count(*) FILTER (WHERE state = 'completed' AND NOT finalized) FROM submissions
		WHERE state IN ('pending', 'processing') OR state = 'completed' AND NOT finalized`

	submissionsSQL = `SELECT id, state, coalesce(error_code, ''), finalized, signature, public_inputs, recipient, swap_terms, created_at, completed_at
		FROM submissions JOIN requests ON submission_id = id`

	swapsSQL = `SELECT id FROM submissions WHERE kind = 'swap' ORDER BY id`

	executionsSQL = `SELECT s.id, parent, state, coalesce(error_code, ''), finalized, signature, phase, timeout_slot, ended, s.created_at, completed_at
		FROM submissions s LEFT JOIN swaps w ON w.id = s.id WHERE kind = 'swap_execution'`

	attemptsSQL = `SELECT signature, submission_id, fee_payer, purpose, blockhash, fee, created_at FROM attempts`

	ledgerOpeningSQL = `SELECT opening FROM ledger_cursors WHERE payer = $1`

	movesSQL = `SELECT signature, payer, recipients, lamports FROM sweeps`

	pinsSQL = `SELECT sign FROM proof_signs`

	ledgerSQL = `SELECT signature, payer, kind, fee, priority_fee, rent, other, received, moved FROM ledger`
)

// Open counts the submissions without an outcome and those whose outcome is not final.
func Open(ctx context.Context, conn *pgx.Conn) (working, unfinalized int, err error) {
	err = conn.QueryRow(ctx, openSQL).Scan(&working, &unfinalized)
	return working, unfinalized, err
}

// Swaps lists the ids of all swaps' first legs.
func Swaps(ctx context.Context, conn *pgx.Conn) (ids []uuid.UUID, err error) {
	err = collect(ctx, conn, &ids, swapsSQL, pgx.RowTo[uuid.UUID])
	return ids, err
}

// LedgerOpening returns a payer's balance before its first transaction, according to the
// ledger; 0 when the ledger does not know the payer.
func LedgerOpening(ctx context.Context, conn *pgx.Conn, payer solana.PublicKey) (lamports uint64, err error) {
	err = conn.QueryRow(ctx, ledgerOpeningSQL, payer.Bytes()).Scan(&lamports)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return lamports, err
}

// Rows reads every row that the checks compare with the chain.
func Rows(ctx context.Context, conn *pgx.Conn, e *verify.Evidence) error {
	var moves []verify.Attempt
	err := errors.Join(
		collect(ctx, conn, &e.Submissions, submissionsSQL, scanSubmission),
		collect(ctx, conn, &e.Executions, executionsSQL, scanExecution),
		collect(ctx, conn, &e.Attempts, attemptsSQL, scanAttempt),
		collect(ctx, conn, &e.Pins, pinsSQL, pgx.RowTo[string]),
		collect(ctx, conn, &moves, movesSQL, scanMove),
		collect(ctx, conn, &e.Entries, ledgerSQL, scanEntry),
	)
	e.Attempts = append(e.Attempts, moves...)
	return err
}

func collect[T any](ctx context.Context, conn *pgx.Conn, into *[]T, sql string, scan pgx.RowToFunc[T]) error {
	rows, err := conn.Query(ctx, sql)
	if err == nil {
		*into, err = pgx.CollectRows(rows, scan)
	}
	if err != nil {
		return fmt.Errorf("read rows with %.60q: %w", sql, err)
	}
	return nil
}

func scanAttempt(row pgx.CollectableRow) (a verify.Attempt, err error) {
	var signature, payer, blockhash []byte
	err = row.Scan(&signature, &a.Submission, &payer, &a.Purpose, &blockhash, &a.Fee, &a.CreatedAt)
	a.Signature, a.Payer, a.Blockhash = solana.SignatureFromBytes(signature), solana.PublicKeyFromBytes(payer), solana.HashFromBytes(blockhash)
	return a, err
}

func scanEntry(row pgx.CollectableRow) (e verify.Entry, err error) {
	var signature, payer []byte
	err = row.Scan(&signature, &payer, &e.Kind, &e.Fee, &e.Priority, &e.Rent, &e.Other, &e.Received, &e.Moved)
	e.Signature, e.Payer = solana.SignatureFromBytes(signature), solana.PublicKeyFromBytes(payer)
	return e, err
}

// scanMove scans a move that the command relay sweep signed.
func scanMove(row pgx.CollectableRow) (a verify.Attempt, err error) {
	var signature, payer []byte
	var recipients [][]byte
	var lamports []int64
	err = row.Scan(&signature, &payer, &recipients, &lamports)
	a.Signature, a.Payer = solana.SignatureFromBytes(signature), solana.PublicKeyFromBytes(payer)
	a.Purpose, a.Moves = verify.PurposeMove, make(map[solana.PublicKey]uint64)
	for i, recipient := range recipients {
		a.Moves[solana.PublicKeyFromBytes(recipient)] += uint64(lamports[i]) //nolint:gosec // the schema allows no negative amount
	}
	return a, err
}

func scanSubmission(row pgx.CollectableRow) (s verify.Submission, err error) {
	var signature, inputs, recipient, terms []byte
	var completed *time.Time
	if err := row.Scan(&s.ID, &s.State, &s.Code, &s.Finalized, &signature, &inputs, &recipient, &terms, &s.CreatedAt, &completed); err != nil {
		return s, err
	}
	copy(s.Signature[:], signature) // without a signature it stays zero
	copy(s.Recipient[:], recipient)
	if completed != nil {
		s.CompletedAt = *completed
	}
	parsed, err := shieldpool.ParsePublicInputs(inputs)
	if err != nil {
		return s, fmt.Errorf("parse the public inputs of request %s: %w", s.ID, err)
	}
	s.Inputs, s.Swap = *parsed, SwapTerms(terms)
	return s, nil
}

// SwapTerms decodes the terms of a swap's row; nil for a row that is not a swap.
func SwapTerms(b []byte) *shieldpool.SwapTerms {
	if len(b) != 72 {
		return nil
	}
	return &shieldpool.SwapTerms{
		OutputMint: solana.PublicKeyFromBytes(b[:32]), RecipientATA: solana.PublicKeyFromBytes(b[32:64]),
		MinOutput: binary.LittleEndian.Uint64(b[64:]),
	}
}

func scanExecution(row pgx.CollectableRow) (s verify.Execution, err error) {
	var signature []byte
	var phase *string
	var timeout *uint64
	var ended *bool
	var completed *time.Time
	if err := row.Scan(&s.ID, &s.Swap, &s.State, &s.Code, &s.Finalized, &signature, &phase, &timeout, &ended, &s.CreatedAt, &completed); err != nil {
		return s, err
	}
	copy(s.Signature[:], signature)
	if phase != nil { // every execution should have a phase, but the drill does not rely on it
		s.Phase, s.Timeout, s.Ended = *phase, *timeout, *ended
	}
	if completed != nil {
		s.CompletedAt = *completed
	}
	return s, nil
}
