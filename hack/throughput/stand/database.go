package stand

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/sandbox"
)

// database is the name of a measurement's database, a copy of a filled database.
const database = "run"

func template(rows int) string { return fmt.Sprintf("rows_%d", rows) }

// fillSQL writes submissions that landed and were finalized over the last days, with their rows in
// other tables. They are within the retention, or the relay would delete them while it is measured. Only
// fillSQL, firstSendSQL and swapsSQL depend on the relay's schema.
var fillSQL = []string{
	`CREATE TEMPORARY TABLE made AS SELECT n, gen_random_uuid() AS id, now() - n * least(3, 300000.0 / $1::int) * interval '1 second' AS at,
		sha256(('a' || n)::bytea) AS nullifier0, sha256(('b' || n)::bytea) AS nullifier1, sha256(('c' || n)::bytea) AS hash,
		sha256(('s' || n)::bytea) || sha256(('t' || n)::bytea) AS signature, $2::bytea AS pool, sha256('payer') AS payer
		FROM generate_series(1, $1::int) AS n`,
	`INSERT INTO submissions (id, pool, kind, state, content_hash, root_seq, epoch, signature, slot, leaf_indices, root, finalized, created_at, completed_at)
		SELECT id, pool, CASE WHEN n % 5 < 3 THEN 'withdrawal' ELSE 'transfer' END, 'completed', hash, 2 * n, 1, signature, n, ARRAY[2 * n, 2 * n + 1], hash, true, at, at + interval '1 second' FROM made ORDER BY n DESC`,
	`INSERT INTO requests (submission_id, proof, proof_sign, public_inputs, recipient, spends)
		SELECT id, (SELECT string_agg(sha256((n || '-' || k)::bytea), '' ORDER BY k) FROM generate_series(1, 8) AS k), 'plain',
			(SELECT string_agg(sha256((n || '+' || k)::bytea), '' ORDER BY k) FROM generate_series(1, 8) AS k) || substr(hash, 1, 8),
			CASE WHEN n % 5 < 3 THEN hash END, ARRAY[nullifier0, nullifier1] FROM made ORDER BY n DESC`,
	`INSERT INTO reservations (pool, nullifier, submission_id)
		SELECT pool, unnest(ARRAY[nullifier0, nullifier1]), id FROM made ORDER BY n DESC`,
	`INSERT INTO attempts (signature, submission_id, epoch, raw, fee_payer, blockhash, blockhash_slot, last_valid_block_height, cost, created_at)
		SELECT signature, id, 1, (SELECT string_agg(sha256((n || '*' || k)::bytea), '') FROM generate_series(1, 31) AS k), payer, hash, n, n + 150, 1786760, at FROM made ORDER BY n DESC`,
	`INSERT INTO ledger (signature, payer, slot, at, submission_id, kind, fee, priority_fee, rent, other, received, after)
		SELECT signature, payer, n, at, id, CASE WHEN n % 5 < 3 THEN 'withdrawal' ELSE 'transfer' END, 5000, 0, 1781760, 0, 0, 1 FROM made ORDER BY n DESC`,
}

// fill makes a database with the relay's schema and so many finished submissions.
func (l *Lab) fill(ctx context.Context, rows int) error {
	name := template(rows)
	if err := l.FreshDatabase(ctx, name, ""); err != nil {
		return err
	}
	if err := l.Migrate(ctx); err != nil {
		return err
	}
	err := l.WithDatabase(ctx, name, func(conn *pgx.Conn) error {
		for i, s := range fillSQL {
			var args []any
			if i == 0 {
				args = []any{rows, l.Pool.Address.Bytes()}
			}
			if _, err := conn.Exec(ctx, s, args...); err != nil {
				return fmt.Errorf("fill a database, statement %d: %w", i+1, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return l.SQL(ctx, name, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements", "VACUUM ANALYZE", "CHECKPOINT")
}

const firstSendSQL = `SELECT a.signature, s.created_at FROM submissions s JOIN attempts a ON a.submission_id = s.id
	WHERE s.created_at >= $1 AND s.created_at < $2
	AND a.epoch = (SELECT min(epoch) FROM attempts WHERE submission_id = s.id)`

// swapsSQL selects the times of the swaps that were executed in a span: acceptance and
// confirmation of the first leg, first signature and confirmation of the execution.
const swapsSQL = `SELECT l.created_at, l.completed_at, (SELECT min(a.created_at) FROM attempts a WHERE a.submission_id = s.id AND a.purpose = 'execute'), s.completed_at
	FROM submissions s JOIN submissions l ON l.id = s.parent JOIN swaps w ON w.id = s.id
	WHERE s.completed_at >= $1 AND s.completed_at < $2 AND w.phase = 'executed'`

// Swap has the times at which an executed swap reached its steps, by the database's clock.
type Swap struct {
	// Accepted and Funded are the first leg's acceptance and confirmation. Signed is when
	// the execution was signed, and Tokens is when it was confirmed.
	Accepted, Funded, Signed, Tokens time.Time
}

// Executed lists the swaps that were executed in a span.
func (s *Stand) Executed(ctx context.Context, from, to time.Time) ([]Swap, error) {
	return sandbox.Select(ctx, s.Sandbox, database, pgx.RowToStructByPos[Swap], swapsSQL, from, to)
}

// Statement has the statistics of Postgres for one statement.
type Statement struct {
	Query   string
	Calls   int64
	MeanMS  float64
	TotalMS float64
	Rows    int64
}

var (
	written  = regexp.MustCompile(`(?i)(?:\binsert into|(?:^|\()\s*update|\bdelete from|^copy)\s+"?(\w+)`)
	selected = regexp.MustCompile(`(?i)\b(?:from|join)\s+(\w+)(?:[^\w(]|$)`) // not a function
)

// Kind names a statement by the tables that it writes or, if it writes none, the first that it reads.
func (s *Statement) Kind() string {
	verb, matches := "writes", written.FindAllStringSubmatch(s.Query, -1)
	if len(matches) == 0 {
		verb, matches = "reads", selected.FindAllStringSubmatch(s.Query, 1)
	}
	var tables []string
	for _, match := range matches {
		if !slices.Contains(tables, match[1]) {
			tables = append(tables, match[1])
		}
	}
	if len(tables) == 0 {
		return "others"
	}
	return verb + " " + strings.Join(tables, "+")
}

// Attempts returns when each submission of a span was accepted, by the signature
// of its first attempt.
func (s *Stand) Attempts(ctx context.Context, from, to time.Time) (map[solana.Signature]time.Time, error) {
	out := make(map[solana.Signature]time.Time)
	err := s.WithDatabase(ctx, database, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, firstSendSQL, from, to)
		if err != nil {
			return err
		}
		var signature []byte
		var at time.Time
		_, err = pgx.ForEachRow(rows, []any{&signature, &at}, func() error {
			out[solana.Signature(signature)] = at
			return nil
		})
		return err
	})
	return out, err
}

// Statements lists the database's statements, the most expensive first.
func (s *Stand) Statements(ctx context.Context) ([]Statement, error) {
	return sandbox.Select(ctx, s.Sandbox, database, pgx.RowToStructByPos[Statement], `SELECT query, calls, mean_exec_time, total_exec_time, rows FROM pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY total_exec_time DESC`)
}
