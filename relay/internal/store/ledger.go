package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/ledger"
)

// Ledger stores what the chain's history shows about the fee payers' lamports. It
// implements ledger.Store.
type Ledger struct{ store *Store }

// Ledger returns the fleet's ledger.
func (s *Store) Ledger() *Ledger { return &Ledger{s} }

const cursorColumns = `payer, opening, signature, slot, after, gaps, missing, checked_at`

func scanCursor(row pgx.CollectableRow) (c ledger.Cursor, err error) {
	var payer, signature []byte
	var checked *time.Time
	if err := row.Scan(&payer, &c.Opening, &signature, &c.Slot, &c.BalanceAfter, &c.Gaps, &c.Missing, &checked); err != nil {
		return c, err
	}
	c.Payer, c.Signature = solana.PublicKeyFromBytes(payer), solana.SignatureFromBytes(signature)
	if checked != nil {
		c.CheckedAt = *checked
	}
	return c, nil
}

// Cursor implements ledger.Store.
func (l *Ledger) Cursor(ctx context.Context, payer solana.PublicKey) (*ledger.Cursor, error) {
	rows, err := l.store.Pool.Query(ctx, `SELECT `+cursorColumns+` FROM ledger_cursors WHERE payer = $1`, payer.Bytes())
	if err != nil {
		return nil, unavailable(fmt.Errorf("read ledger cursor: %w", err))
	}
	c, err := pgx.CollectExactlyOneRow(rows, scanCursor)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // nil is "none yet", as documented
	}
	if err != nil {
		return nil, unavailable(fmt.Errorf("read ledger cursor: %w", err))
	}
	return &c, nil
}

// attemptsSQL returns the submission id that the client knows. Both legs of a swap have the first
// leg's id. A sweep has the nil UUID.
const attemptsSQL = `SELECT a.signature, COALESCE(s.parent, s.id), CASE s.kind WHEN 'swap_execution' THEN 'swap' ELSE s.kind END, a.purpose, 0::bigint, a.tip
	FROM attempts a JOIN submissions s ON s.id = a.submission_id WHERE a.signature = ANY($1)
	UNION ALL SELECT signature, '00000000-0000-0000-0000-000000000000', 'sweep', '', (SELECT sum(l) FROM unnest(lamports) AS l)::bigint, 0::bigint
	FROM sweeps WHERE signature = ANY($1)`

// Attempts implements ledger.Store.
func (l *Ledger) Attempts(ctx context.Context, signatures []solana.Signature) (map[solana.Signature]ledger.Attempt, error) {
	found := map[solana.Signature]ledger.Attempt{}
	if len(signatures) == 0 {
		return found, nil
	}
	raw := make([][]byte, len(signatures))
	for i := range signatures {
		raw[i] = signatures[i][:]
	}
	rows, err := l.store.Pool.Query(ctx, attemptsSQL, raw)
	if err != nil {
		return nil, unavailable(fmt.Errorf("find attempts: %w", err))
	}
	var sig []byte
	var a ledger.Attempt
	_, err = pgx.ForEachRow(rows, []any{&sig, &a.Submission, &a.Kind, &a.Purpose, &a.Moved, &a.Tip}, func() error {
		found[solana.SignatureFromBytes(sig)] = a
		return nil
	})
	if err != nil {
		return nil, unavailable(fmt.Errorf("find attempts: %w", err))
	}
	return found, nil
}

// Append implements ledger.Store.
func (l *Ledger) Append(ctx context.Context, from *ledger.Cursor, to ledger.Cursor, entries []ledger.Entry) error {
	return l.store.inTx(ctx, func(tx pgx.Tx) error {
		if err := moveCursor(ctx, tx, from, &to); err != nil {
			return err
		}
		if len(entries) == 0 {
			return nil
		}
		return insertEntries(ctx, tx, entries)
	})
}

// moveCursor serialises processes that read the same history: the second one
// gets ledger.ErrCursorMoved.
func moveCursor(ctx context.Context, tx pgx.Tx, from, to *ledger.Cursor) error {
	var checked *time.Time
	if !to.CheckedAt.IsZero() {
		checked = &to.CheckedAt
	}
	args := []any{to.Payer.Bytes(), to.Opening, to.Signature[:], to.Slot, to.BalanceAfter, to.Gaps, to.Missing, checked}
	sql := `INSERT INTO ledger_cursors (` + cursorColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`
	if from != nil {
		sql = `UPDATE ledger_cursors SET opening = $2, signature = $3, slot = $4, after = $5, gaps = $6, missing = $7, checked_at = $8
			WHERE payer = $1 AND slot = $9`
		args = append(args, from.Slot)
	}
	tag, err := tx.Exec(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("move ledger cursor: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ledger.ErrCursorMoved
	}
	return nil
}

// insertEntries inserts the entries that are not stored yet, and adds these to the sums of their
// days.
func insertEntries(ctx context.Context, tx pgx.Tx, entries []ledger.Entry) error {
	n := len(entries)
	signatures, payers := make([][]byte, n), make([][]byte, n)
	slots, afters := make([]uint64, n), make([]uint64, n)
	fees, priority, received := make([]uint64, n), make([]uint64, n), make([]uint64, n)
	rent, other, moved, tips := make([]int64, n), make([]int64, n), make([]int64, n), make([]uint64, n)
	times, ids, kinds := make([]time.Time, n), make([]*uuid.UUID, n), make([]string, n)
	for i := range entries {
		e := &entries[i]
		signatures[i], payers[i], slots[i], afters[i] = e.Signature[:], e.Payer.Bytes(), e.Slot, e.BalanceAfter
		times[i], ids[i], kinds[i] = e.At, e.Submission, string(e.Kind)
		fees[i], priority[i], rent[i], other[i], received[i] = e.Fee, e.PriorityFee, e.Rent, e.Other, e.Received
		moved[i], tips[i] = e.Moved, e.Tip
	}
	_, err := tx.Exec(ctx, `WITH new AS (
			INSERT INTO ledger (signature, payer, slot, at, submission_id, kind, fee, priority_fee, rent, other, received, after, moved, tip)
			SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::timestamptz[], $5::uuid[], $6::text[],
				$7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[])
			ON CONFLICT DO NOTHING
			RETURNING (at AT TIME ZONE 'UTC')::date AS day, payer, kind, fee, priority_fee, tip, rent, other, moved, received)
		INSERT INTO ledger_days (day, payer, kind, transactions, fee, priority_fee, tip, rent, returned, other, moved, received)
		SELECT day, payer, kind, count(*), sum(fee), sum(priority_fee), sum(tip), sum(rent), sum(greatest(-rent, 0)), sum(other), sum(moved), sum(received) FROM new GROUP BY day, payer, kind
		ON CONFLICT (day, payer, kind) DO UPDATE SET transactions = ledger_days.transactions + EXCLUDED.transactions,
			fee = ledger_days.fee + EXCLUDED.fee, priority_fee = ledger_days.priority_fee + EXCLUDED.priority_fee,
			tip = ledger_days.tip + EXCLUDED.tip, rent = ledger_days.rent + EXCLUDED.rent,
			returned = ledger_days.returned + EXCLUDED.returned, other = ledger_days.other + EXCLUDED.other,
			moved = ledger_days.moved + EXCLUDED.moved, received = ledger_days.received + EXCLUDED.received`,
		signatures, payers, slots, times, ids, kinds, fees, priority, rent, other, received, afters, moved, tips)
	if err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	return nil
}

// Read returns the sums of the days from first to last, both included and in UTC. It also
// returns the totals of all stored days and all cursors. All are from one snapshot.
func (l *Ledger) Read(ctx context.Context, first, last time.Time) (*ledger.Snapshot, error) {
	var out ledger.Snapshot
	err := pgx.BeginTxFunc(ctx, l.store.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		const sums = `transactions, fee, priority_fee, tip, rent, returned, other, moved, received`
		if out.Days, err = readSums(ctx, tx, `SELECT day, payer, kind, `+sums+` FROM ledger_days
			WHERE day BETWEEN $1::date AND $2::date ORDER BY day, payer, kind`, first.UTC().Format(time.DateOnly), last.UTC().Format(time.DateOnly)); err != nil {
			return err
		}
		if out.Totals, err = readSums(ctx, tx, `SELECT NULL::date, payer, kind, sum(transactions)::bigint, sum(fee)::bigint, sum(priority_fee)::bigint, sum(tip)::bigint,
			sum(rent)::bigint, sum(returned)::bigint, sum(other)::bigint, sum(moved)::bigint, sum(received)::bigint FROM ledger_days GROUP BY payer, kind ORDER BY payer, kind`); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT `+cursorColumns+` FROM ledger_cursors ORDER BY payer`)
		if err != nil {
			return fmt.Errorf("read ledger cursors: %w", err)
		}
		out.Cursors, err = pgx.CollectRows(rows, scanCursor)
		return err
	})
	if err != nil {
		return nil, unavailable(fmt.Errorf("read ledger: %w", err))
	}
	return &out, nil
}

func readSums(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]ledger.Sum, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read ledger days: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s ledger.Sum, err error) {
		var day *time.Time
		var payer []byte
		err = row.Scan(&day, &payer, &s.Kind, &s.Transactions, &s.Fee, &s.PriorityFee, &s.Tip, &s.Rent, &s.Returned, &s.Other, &s.Moved, &s.Received)
		if err != nil {
			return s, err
		}
		if day != nil {
			s.Day = *day
		}
		s.Payer = solana.PublicKeyFromBytes(payer)
		return s, nil
	})
}

// DeleteBefore deletes at most limit rows of transactions that landed before a time, the oldest
// first, and returns how many it deleted. The daily sums stay.
func (l *Ledger) DeleteBefore(ctx context.Context, before time.Time, limit int) (int64, error) {
	tag, err := l.store.Pool.Exec(ctx, `DELETE FROM ledger WHERE (payer, signature) IN (
		SELECT payer, signature FROM ledger WHERE at < $1 ORDER BY at LIMIT $2)`, before, limit)
	if err != nil {
		return 0, unavailable(fmt.Errorf("delete old ledger rows: %w", err))
	}
	return tag.RowsAffected(), nil
}
