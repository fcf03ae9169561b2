package store

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// fill makes the database of a fleet that has run for long: finished submissions
// with their other rows, and a few under way. It returns a live worker.
func fill(t testing.TB, s *Store, finished int) uuid.UUID {
	t.Helper()
	underWay := min(finished/50, 2000)
	bulk(t, s, finished*9/10, "completed")
	bulk(t, s, finished/10, "failed")
	bulk(t, s, underWay*3/4, "processing")
	bulk(t, s, underWay/4, "pending")
	exec(t, s, `INSERT INTO attempts (signature, submission_id, epoch, raw, fee_payer, blockhash, blockhash_slot, last_valid_block_height, cost, dead)
		SELECT sha512(id::text::bytea), id, 1, decode(repeat('ab', 200), 'hex'), pool, pool, 1, 2, 3, state = 'failed' FROM submissions WHERE state <> 'pending'`)
	exec(t, s, `INSERT INTO reservations SELECT pool, sha256(id::text::bytea), id FROM submissions WHERE state <> 'failed'`)
	exec(t, s, `INSERT INTO idempotency_keys SELECT sha256(id::text::bytea), content_hash, id, created_at FROM submissions`)
	for i := range 3 {
		exec(t, s, `UPDATE submissions SET lease_owner = $1 WHERE state = 'processing' AND job_id % 4 = $2`, worker(t, s), i)
	}
	exec(t, s, `UPDATE submissions SET state = 'completed', signature = sha512(id::text::bytea) WHERE state = 'processing' AND job_id % 5 = 0`)
	exec(t, s, `UPDATE submissions SET due_at = now() + interval '1 hour', hold_reason = 'fee_payer_empty' WHERE state = 'processing' AND job_id % 5 = 1 AND lease_owner IS NULL`)
	insertWaitingSwaps(t, s, underWay*5/2)
	exec(t, s, `INSERT INTO swaps (id, phase, timeout_slot, ended) SELECT gen_random_uuid(), 'executed', n, true FROM generate_series(1, $1) AS n`, finished)
	exec(t, s, `VACUUM ANALYZE`)
	return worker(t, s)
}

// literal formats a value as an SQL literal.
func literal(v any) string {
	switch v := v.(type) {
	case int, int64:
		return fmt.Sprint(v)
	case []byte:
		return `'\x` + hex.EncodeToString(v) + `'`
	case [][]byte:
		var b strings.Builder
		for _, e := range v {
			fmt.Fprintf(&b, `%s"\\x%s"`, map[bool]string{true: ",", false: ""}[b.Len() > 0], hex.EncodeToString(e))
		}
		return "'{" + b.String() + "}'"
	case []string:
		return arrayLiteral(v)
	case []int64:
		return arrayLiteral(v)
	case []uuid.UUID:
		return arrayLiteral(v)
	case []*uuid.UUID:
		return arrayLiteral(v)
	case nil:
		return "NULL"
	case time.Time:
		return "'" + v.Format(time.RFC3339) + "'"
	default:
		return fmt.Sprintf("'%v'", v)
	}
}

func arrayLiteral[T any](in []T) string {
	parts := make([]string, len(in))
	for i := range in {
		parts[i] = strconv.Quote(fmt.Sprint(in[i]))
	}
	return "'{" + strings.Join(parts, ",") + "}'"
}

// statement is an SQL statement of the relay, with values of its parameters.
type statement struct {
	sql  string
	args []any
}

// statements are all statements that read or write submissions and their other rows.
func statements(s *Store, w uuid.UUID, t testing.TB) map[string]statement {
	id := one[uuid.UUID](t, s, `SELECT id FROM submissions WHERE state = 'processing' AND lease_owner IS NOT NULL LIMIT 1`)
	sub := withdrawal(1, 2)
	hash := make([]byte, 32)
	spend := [][]byte{hash}
	landing := []any{fmt.Sprintf("{%s}", id), "{1}", fmt.Sprintf("{%s}", w), [][]byte{make([]byte, 64)}, "{5}", `{"{1,2}"}`, [][]byte{hash}, "{executed}", "{7}", "{8}"}
	return map[string]statement{
		"accept":              {acceptSQL, acceptArgs([]acceptCall{{sub: sub, spends: spend, keyHash: hash, worker: &w}})},
		"find repeats":        {repeatsSQL, []any{[][]byte{testPool.Bytes()}, spend, [][]byte{hash}, "24 hours"}},
		"read a submission":   {getSQL, []any{fmt.Sprintf("{%s}", id)}},
		"claim":               {claimSQL, []any{w, 64}},
		"claim second legs":   {claimExecutionsSQL, []any{w, 64}},
		"probe":               {probeSQL, []any{w, 64}},
		"claim landed":        {claimLandedSQL, []any{w, 64}},
		"delete dead workers": {deleteDeadWorkersSQL, nil},
		"free leases":         {freeLeasesSQL, []any{freeBatch}},
		"release all":         {releaseAllSQL, []any{w}},
		"list leases":         {leasesSQL, []any{w}},
		"release":             {releaseSQL, []any{id, 1, w, "1 s", ""}},
		"record attempt":      {recordSQL, recordArgs([]recordCall{{lease: txmgr.Lease{ID: id, Epoch: 1, Owner: w}, attempt: attempt(1)}})},
		"mark rejected":       {markRejectedSQL, []any{id, 1, w, make([]byte, 64)}},
		"update swap":         {updateSwapSQL, []any{id, 1, w, "funded", 5}},
		"mark dead":           {markDeadSQL, []any{id, 1, w, [][]byte{make([]byte, 64)}, "{1}"}},
		"complete":            {completeSQL, landing},
		"finalize":            {finalizeSQL, append(append([]any{}, landing...), "{}", "{}", "{}")},
		"reopen":              {reopenSQL, []any{id, 1, w}},
		"lock":                {lockSQL, []any{id, 1, w}},
		"fail":                {failSQL, []any{id, 1, w, "root_not_found", "x", "{}"}},
		"count backlog":       {backlogSQL, nil},
		"sum up swaps":        {swapsSQL, []any{300}},
		"list swaps":          {listOpenSwapsSQL, []any{20}},
		"find attempts":       {attemptsSQL, []any{[][]byte{make([]byte, 64)}}},
		"count unresolved":    {unresolvedSQL, []any{[][]byte{testPool.Bytes()}}},
		"list jobs":           {jobsSQL, nil},
		"count the queue":     {queueByRootSQL, []any{testPool.Bytes(), 0}},
		"list sent leaves":    {sentLeavesSQL, []any{testPool.Bytes()}},
		"delete finished":     {deleteFinishedSQL, []any{time.Now().Add(-29 * 24 * time.Hour), 1000}},
		"delete keys":         {deleteKeysSQL, []any{time.Now().Add(-29 * 24 * time.Hour), 1000}},
	}
}

// explain returns the plan that Postgres makes for the statement.
func explain(t testing.TB, conn *pgx.Conn, mode string, st statement) string {
	t.Helper()
	return explainWith(t, conn, mode, `EXPLAIN `, st)
}

// explainWith returns the plan that the given EXPLAIN command prints for the statement.
func explainWith(t testing.TB, conn *pgx.Conn, mode, command string, st statement) string {
	t.Helper()
	ctx := t.Context()
	if _, err := conn.Exec(ctx, `SET plan_cache_mode = `+mode); err != nil {
		t.Fatal(err)
	}
	name := "s" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := conn.Prepare(ctx, name, st.sql); err != nil {
		t.Fatalf("prepare: %v", err)
	}
	args := make([]string, len(st.args))
	for i, a := range st.args {
		args[i] = literal(a)
	}
	execute := "EXECUTE " + name
	if len(args) > 0 {
		execute += "(" + strings.Join(args, ", ") + ")"
	}
	rows, err := conn.Query(ctx, command+execute, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("explain: %v", err)
	}
	return strings.Join(lines, "\n")
}

// scannedTables returns the large tables that a plan reads from end to end.
func scannedTables(plan string) (found []string) {
	for _, table := range []string{"submissions", "requests", "attempts", "reservations", "idempotency_keys", "swaps"} {
		if strings.Contains(plan, "Seq Scan on "+table) {
			found = append(found, table)
		}
	}
	return found
}

// wantIndexScans fails for every statement whose plan scans a large table, both
// planned for its values and planned for any values.
func wantIndexScans(t testing.TB, s *Store, all map[string]statement) {
	t.Helper()
	pooled, err := s.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer pooled.Release()
	for name, st := range all {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			plan := explain(t, pooled.Conn(), mode, st)
			if found := scannedTables(plan); len(found) > 0 {
				t.Errorf("%s (%s) reads all of %v:\n%s", name, mode, found, plan)
			}
		}
	}
	if plan := explain(t, pooled.Conn(), "force_custom_plan", statement{`SELECT count(*) FROM submissions WHERE root = $1`, []any{[]byte{1}}}); len(scannedTables(plan)) != 1 {
		t.Errorf("no scan found in a plan that has one:\n%s", plan)
	}
}

func TestNoStatementReadsALargeTableFromEndToEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a Postgres server of its own")
	}
	t.Parallel()
	s := openOn(t, pgtest.Server(t).URL("postgres"))
	wantIndexScans(t, s, statements(s, fill(t, s, 100_000), t))
}

// A plan that reads all of a small table is kept while the table grows, until the next ANALYZE.
func TestStatementsOfEachSubmissionReadNoTableOfThreeHundredRowsFromEndToEnd(t *testing.T) {
	t.Parallel()
	s := openOn(t, pgtest.Server(t).URL("postgres"))
	all := statements(s, fill(t, s, 300), t)
	often := make(map[string]statement)
	for _, name := range []string{"accept", "find repeats", "read a submission", "claim", "record attempt", "complete", "finalize"} {
		often[name] = all[name]
	}
	wantIndexScans(t, s, often)
}
