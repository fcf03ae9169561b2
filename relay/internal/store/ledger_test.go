package store

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/spendcap"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

var (
	payerOne = solana.PublicKey{1}
	payerTwo = solana.PublicKey{2}
)

// entry is a transaction of the payer at a time, with fees of 5010 lamports and rent.
func entry(n byte, payer solana.PublicKey, at time.Time) ledger.Entry {
	id := uuid.UUID{n}
	return ledger.Entry{
		Signature: solana.Signature{n}, Payer: payer, Slot: uint64(n), At: at, Kind: ledger.KindTransfer, Submission: &id,
		Amounts: ledger.Amounts{Fee: 5000, PriorityFee: 10, Rent: 1_781_760}, BalanceAfter: 1000,
	}
}

func received(n byte, payer solana.PublicKey, at time.Time, lamports uint64) ledger.Entry {
	return ledger.Entry{
		Signature: solana.Signature{n}, Payer: payer, Slot: uint64(n), At: at, Kind: ledger.KindReceived,
		Amounts: ledger.Amounts{Received: lamports}, BalanceAfter: 1000,
	}
}

func read(t *testing.T, l *Ledger, first, last time.Time) *ledger.Snapshot {
	t.Helper()
	out, err := l.Read(t.Context(), first, last)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLedgerCursorRoundTrip(t *testing.T) {
	t.Parallel()
	l := open(t).Ledger()
	if c, err := l.Cursor(t.Context(), payerOne); c != nil || err != nil {
		t.Fatalf("before the first Append the cursor is %+v (%v), want none", c, err)
	}
	at := time.Date(2026, 11, 21, 7, 0, 0, 123_000, time.UTC)
	one := ledger.Cursor{Payer: payerOne, Opening: 1 << 60, Signature: solana.Signature{1}, Slot: 5, BalanceAfter: 1<<60 + 1}
	two := ledger.Cursor{Payer: payerOne, Opening: 1 << 60, Signature: solana.Signature{2}, Slot: 9, BalanceAfter: 7, Gaps: 2, Missing: -30, CheckedAt: at}
	for i, step := range []struct{ from, to *ledger.Cursor }{{nil, &one}, {&one, &two}} {
		if err := l.Append(t.Context(), step.from, *step.to, nil); err != nil {
			t.Fatal(err)
		}
		got, err := l.Cursor(t.Context(), payerOne)
		if diff := cmp.Diff(step.to, got); diff != "" || err != nil {
			t.Errorf("cursor %d differs (%v, -want +got):\n%s", i, err, diff)
		}
	}
	if diff := cmp.Diff([]ledger.Cursor{two}, read(t, l, at, at).Cursors); diff != "" {
		t.Errorf("cursors differ (-want +got):\n%s", diff)
	}
}

func TestAppendFromAnotherCursorChangesNothing(t *testing.T) {
	t.Parallel()
	l := open(t).Ledger()
	at := time.Now()
	one := ledger.Cursor{Payer: payerOne, Slot: 5}
	if err := l.Append(t.Context(), nil, one, nil); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]*ledger.Cursor{"none": nil, "another slot": {Payer: payerOne, Slot: 4}, "another payer": {Payer: payerTwo, Slot: 5}} {
		to := ledger.Cursor{Payer: payerOne, Slot: 6}
		if from != nil {
			to.Payer = from.Payer
		}
		err := l.Append(t.Context(), from, to, []ledger.Entry{entry(1, payerOne, at)})
		if !errors.Is(err, ledger.ErrCursorMoved) {
			t.Errorf("from %s: error is %v, want ErrCursorMoved", name, err)
		}
	}
	if got := read(t, l, at, at); len(got.Totals) != 0 || got.Cursors[0].Slot != 5 {
		t.Errorf("the ledger is %+v, want nothing in it", got)
	}
}

func TestOneOfConcurrentAppendsMovesTheCursor(t *testing.T) {
	t.Parallel()
	l := open(t).Ledger()
	from := ledger.Cursor{Payer: payerOne, Slot: 5}
	if err := l.Append(t.Context(), nil, from, nil); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	var mu sync.Mutex
	won := 0
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			err := l.Append(t.Context(), &from, ledger.Cursor{Payer: payerOne, Slot: 6}, []ledger.Entry{entry(1, payerOne, at)})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case !errors.Is(err, ledger.ErrCursorMoved):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if totals := read(t, l, at, at).Totals; won != 1 || len(totals) != 1 || totals[0].Transactions != 1 {
		t.Errorf("%d appends moved the cursor and the totals are %+v, want 1 append with its entry", won, totals)
	}
}

func TestLedgerDaysAreInUTC(t *testing.T) {
	t.Parallel()
	// This session's time zone has other days than UTC.
	config := open(t).Pool.Config()
	config.ConnConfig.RuntimeParams["timezone"] = "Asia/Tokyo"
	tokyo, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tokyo.Close)
	s, err := New(tokyo)
	if err != nil {
		t.Fatal(err)
	}
	l := s.Ledger()
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	late, early := day.Add(24*time.Hour-time.Microsecond).In(time.FixedZone("", 9*3600)), day.Add(24*time.Hour).In(time.FixedZone("", -9*3600))
	entries := []ledger.Entry{
		entry(1, payerOne, late), entry(2, payerOne, early), entry(3, payerOne, early),
		received(4, payerOne, late, 50), entry(5, payerTwo, late),
		// One transaction moves lamports from one of our payers to another.
		received(5, payerOne, late, 7),
	}
	if err := l.Append(t.Context(), nil, ledger.Cursor{Payer: payerOne, Slot: 5}, entries); err != nil {
		t.Fatal(err)
	}
	// After a manual reset of the cursor the entries are appended again: none is added twice.
	if err := l.Append(t.Context(), &ledger.Cursor{Payer: payerOne, Slot: 5}, ledger.Cursor{Payer: payerOne, Slot: 6}, append(entries, entry(6, payerOne, early))); err != nil {
		t.Fatal(err)
	}
	amounts := func(n uint64) ledger.Amounts {
		return ledger.Amounts{Fee: n * 5000, PriorityFee: n * 10, Rent: int64(n) * 1_781_760}
	}
	sum := func(d time.Time, payer solana.PublicKey, k ledger.Kind, n uint64, a ledger.Amounts) ledger.Sum {
		return ledger.Sum{Day: d, Payer: payer, Kind: k, Transactions: n, Amounts: a}
	}
	next := day.AddDate(0, 0, 1)
	first := []ledger.Sum{
		sum(day, payerOne, ledger.KindReceived, 2, ledger.Amounts{Received: 57}),
		sum(day, payerOne, ledger.KindTransfer, 1, amounts(1)),
		sum(day, payerTwo, ledger.KindTransfer, 1, amounts(1)),
	}
	second := sum(next, payerOne, ledger.KindTransfer, 3, amounts(3))
	tests := map[string]struct {
		first, last time.Time
		want        []ledger.Sum
	}{
		"both days":            {day, next, append(slices.Clone(first), second)},
		"the first day":        {day, day.Add(time.Hour), first},
		"the second day":       {next.Add(23 * time.Hour), next, []ledger.Sum{second}},
		"days without entries": {next.AddDate(0, 0, 1), next.AddDate(0, 0, 9), nil},
	}
	for name, test := range tests {
		got := read(t, l, test.first, test.last)
		if diff := cmp.Diff(test.want, got.Days, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: sums differ (-want +got):\n%s", name, diff)
		}
		totals := []ledger.Sum{
			sum(time.Time{}, payerOne, ledger.KindReceived, 2, ledger.Amounts{Received: 57}),
			sum(time.Time{}, payerOne, ledger.KindTransfer, 4, amounts(4)),
			sum(time.Time{}, payerTwo, ledger.KindTransfer, 1, amounts(1)),
		}
		if diff := cmp.Diff(totals, got.Totals); diff != "" {
			t.Errorf("totals differ (-want +got):\n%s", diff)
		}
	}
}

func TestDeleteBeforeDeletesLedgerRowsAndKeepsSums(t *testing.T) {
	t.Parallel()
	l := open(t).Ledger()
	now := time.Now()
	var entries []ledger.Entry
	for n := range byte(10) {
		entries = append(entries, entry(n, payerOne, now.Add(-time.Duration(n)*time.Hour)))
	}
	if err := l.Append(t.Context(), nil, ledger.Cursor{Payer: payerOne, Slot: 9}, entries); err != nil {
		t.Fatal(err)
	}
	before := read(t, l, now, now).Totals
	for i, want := range []int64{4, 2, 0} { // entries 4 to 9 are older
		if n, err := l.DeleteBefore(t.Context(), now.Add(-210*time.Minute), 4); err != nil || n != want {
			t.Errorf("deletion %d deletes %d rows (%v), want %d", i, n, err, want)
		}
	}
	var left []byte
	rows, err := l.store.Pool.Query(t.Context(), `SELECT signature FROM ledger`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var signature []byte
		if err := rows.Scan(&signature); err != nil {
			t.Fatal(err)
		}
		left = append(left, signature[0])
	}
	slices.Sort(left)
	if diff := cmp.Diff([]byte{0, 1, 2, 3}, left); diff != "" || rows.Err() != nil {
		t.Errorf("rows left differ (%v, -want +got):\n%s", rows.Err(), diff)
	}
	if diff := cmp.Diff(before, read(t, l, now, now).Totals); diff != "" {
		t.Errorf("totals changed (-before +after):\n%s", diff)
	}
}

func TestLedgerFindsAttemptsBySignature(t *testing.T) {
	t.Parallel()
	s := open(t)
	l := s.Ledger()
	if found, err := l.Attempts(t.Context(), nil); err != nil || len(found) != 0 {
		t.Errorf("without signatures %v is found (%v), want nothing", found, err)
	}
	sub := accept(t, s, withdrawal(1, 2), nil)
	c := claim(t, s, worker(t, s))
	if err := s.RecordAttempt(t.Context(), c[0].Lease, attempt(7)); err != nil {
		t.Fatal(err)
	}
	found, err := l.Attempts(t.Context(), []solana.Signature{{7}, {8}})
	want := map[solana.Signature]ledger.Attempt{{7}: {Submission: sub.ID, Kind: shieldpool.KindWithdrawal, Purpose: txmgr.PurposeTransact}}
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Errorf("attempts differ (%v, -want +got):\n%s", err, diff)
	}
}

// BenchmarkAppendLedger appends 200 rows, like one step of the reconciler.
func BenchmarkAppendLedger(b *testing.B) {
	l := open(b).Ledger()
	from := ledger.Cursor{Payer: payerOne}
	if err := l.Append(b.Context(), nil, from, nil); err != nil {
		b.Fatal(err)
	}
	entries := make([]ledger.Entry, 200)
	rows := 0
	for b.Loop() {
		to := from
		to.Slot++
		for i := range entries {
			entries[i] = entry(1, payerOne, time.Now())
			entries[i].Signature = solana.Signature{1, byte(i), byte(to.Slot), byte(to.Slot >> 8), byte(to.Slot >> 16)}
		}
		if err := l.Append(b.Context(), &from, to, entries); err != nil {
			b.Fatal(err)
		}
		from, rows = to, rows+len(entries)
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkSpendBuckets reads a day of buckets, each with 8 shards.
func BenchmarkSpendBuckets(b *testing.B) {
	s := open(b)
	_, err := s.Pool.Exec(b.Context(), `INSERT INTO spend_buckets SELECT date_bin('5 minutes', now(), 'epoch') - n * interval '5 minutes', shard, transfer, 1
		FROM generate_series(0, 287) n, generate_series(0, 7) shard, (VALUES (true), (false)) AS sorts (transfer)`)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.SpendBuckets(b.Context(), spendcap.BucketsKept); err != nil {
			b.Fatal(err)
		}
	}
}
