package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/relaypool/relaypool/relay/internal/sweep"
)

// Sweeps stores the transactions that move lamports between fee payers, and to other accounts
// of the people who run the fleet. It implements sweep.Store.
type Sweeps struct{ store *Store }

var _ sweep.Store = (*Sweeps)(nil)

// Sweeps returns the fleet's sweeps.
func (s *Store) Sweeps() *Sweeps { return &Sweeps{s} }

const (
	openSweepsSQL = `SELECT signature, step, payer, recipients, lamports, fee, raw, blockhash, blockhash_slot, last_valid_block_height
		FROM sweeps WHERE state = 'open' AND payer = ANY ($1) ORDER BY created_at, signature`
	newestSweepSQL = `SELECT COALESCE(max(slot), 0) FROM sweeps WHERE state = 'landed' AND (payer = ANY ($1) OR recipients && $1)`

	recordSweepSQL = `INSERT INTO sweeps (signature, step, payer, recipients, lamports, fee, raw, blockhash, blockhash_slot, last_valid_block_height)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	resolveSweepSQL = `UPDATE sweeps SET state = $2, slot = NULLIF($3::bigint, 0), ended_at = now() WHERE signature = $1 AND state = 'open'`

	// unresolvedSQL starts from the submissions under way: these are few, even if millions have
	// finished. It cannot start from the payer, because attempts have no index by payer: every
	// write of an attempt would have to update that index. Of a submission that landed minutes ago, an
	// attempt that another one overtook may still land, and fail for its fee. Without OFFSET 0, the planner could
	// decide to read all attempts.
	unresolvedSQL = `
WITH unfinished AS MATERIALIZED (
	SELECT id, state, NULL::bytea AS landed FROM submissions WHERE state IN ('pending', 'processing')
	UNION SELECT id, state, NULL FROM submissions WHERE state = 'completed' AND NOT finalized AND lease_owner IS NULL
	UNION SELECT id, state, NULL FROM submissions WHERE lease_owner IS NOT NULL AND NOT finalized
	UNION SELECT id, state, signature FROM submissions WHERE state = 'completed' AND finalized AND completed_at > now() - interval '5 minutes'
)
SELECT count(*) FILTER (WHERE u.state <> 'completed'), count(*) FILTER (WHERE u.state = 'completed'),
	COALESCE(EXTRACT(epoch FROM now() - min(a.created_at)) * 1000000000, 0)::bigint
FROM unfinished u CROSS JOIN LATERAL (
	SELECT created_at FROM attempts WHERE submission_id = u.id AND fee_payer = ANY ($1) AND NOT dead
		AND (u.landed IS NULL OR signature <> u.landed AND created_at > now() - interval '5 minutes') OFFSET 0) a`
)

// Unresolved implements sweep.Store.
func (w *Sweeps) Unresolved(ctx context.Context, payers []solana.PublicKey) (u sweep.Unresolved, err error) {
	err = w.store.Pool.QueryRow(ctx, unresolvedSQL, rawKeys(payers)).Scan(&u.Open, &u.Unfinalized, &u.Oldest)
	if err != nil {
		return u, unavailable(fmt.Errorf("count unresolved attempts: %w", err))
	}
	return u, nil
}

// OpenAttempts implements sweep.Session.
func (s *session) OpenAttempts(ctx context.Context, payers, accounts []solana.PublicKey) (attempts []sweep.Attempt, newestSlot uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, err := s.conn.Query(ctx, openSweepsSQL, rawKeys(payers))
	if err != nil {
		return nil, 0, unavailable(fmt.Errorf("read open sweeps: %w", err))
	}
	if attempts, err = pgx.CollectRows(rows, scanSweep); err != nil {
		return nil, 0, unavailable(fmt.Errorf("read open sweeps: %w", err))
	}
	if err := s.conn.QueryRow(ctx, newestSweepSQL, rawKeys(accounts)).Scan(&newestSlot); err != nil {
		return nil, 0, unavailable(fmt.Errorf("read the newest sweep: %w", err))
	}
	return attempts, newestSlot, nil
}

func scanSweep(row pgx.CollectableRow) (a sweep.Attempt, err error) {
	var signature, payer, blockhash []byte
	var recipients [][]byte
	var lamports []uint64
	err = row.Scan(&signature, &a.Step, &payer, &recipients, &lamports, &a.Fee, &a.Raw, &blockhash, &a.BlockhashSlot, &a.LastValidBlockHeight)
	if err != nil {
		return a, err
	}
	a.Signature, a.FeePayer, a.Blockhash = solana.SignatureFromBytes(signature), solana.PublicKeyFromBytes(payer), solana.HashFromBytes(blockhash)
	for i := range recipients {
		a.Transfers = append(a.Transfers, sweep.Transfer{To: solana.PublicKeyFromBytes(recipients[i]), Lamports: lamports[i]})
	}
	return a, nil
}

// Record implements sweep.Session. It writes on the connection that holds the locks.
func (s *session) Record(ctx context.Context, a sweep.Attempt) error {
	recipients, lamports := make([][]byte, len(a.Transfers)), make([]uint64, len(a.Transfers))
	for i, t := range a.Transfers {
		recipients[i], lamports[i] = t.To.Bytes(), t.Lamports
	}
	err := s.exec(ctx, "record sweep", recordSweepSQL, a.Signature[:], string(a.Step), a.FeePayer.Bytes(), recipients, lamports, a.Fee, a.Raw,
		a.Blockhash[:], a.BlockhashSlot, a.LastValidBlockHeight)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.ConstraintName == "sweeps_pkey" {
		return sweep.ErrSameTransaction
	}
	return err
}

// Resolve implements sweep.Session. An outcome that is already recorded does not change.
func (s *session) Resolve(ctx context.Context, signature solana.Signature, end sweep.End, slot uint64) error {
	return s.exec(ctx, "resolve sweep", resolveSweepSQL, signature[:], string(end), slot)
}

func rawKeys(keys []solana.PublicKey) [][]byte {
	raw := make([][]byte, len(keys))
	for i := range keys {
		raw[i] = keys[i].Bytes()
	}
	return raw
}
