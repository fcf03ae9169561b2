package store

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/spendcap"
)

// spend runs spendSQL as a statement that records attempts does.
func spend(t *testing.T, s *Store, transfer bool, lamports ...int64) {
	t.Helper()
	_, err := s.Pool.Exec(t.Context(), `WITH spend_change AS (SELECT $1::boolean AS transfer, unnest($2::bigint[]) AS lamports), spend AS (`+spendSQL+`) SELECT`, transfer, lamports)
	if err != nil {
		t.Fatal(err)
	}
}

// total returns the sums of the buckets of transfers (true) and of others (false).
func total(t *testing.T, s *Store) map[bool]int64 {
	t.Helper()
	buckets, err := s.SpendBuckets(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[bool]int64{}
	for _, b := range buckets {
		if b.Age < 0 || b.Age > spendcap.BucketWidth+time.Minute {
			t.Errorf("a new bucket is %s old, want at most %s", b.Age, spendcap.BucketWidth+time.Minute)
		}
		sums[b.Transfer] += b.Lamports
	}
	return sums
}

func TestConcurrentSpendingAddsUp(t *testing.T) {
	t.Parallel()
	s := open(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 25 {
				spend(t, s, true, 1_786_760, 5000)
				spend(t, s, false, 10)
				spend(t, s, true, -5000)
			}
		})
	}
	group.Wait()
	if diff := cmp.Diff(map[bool]int64{true: 200 * 1_786_760, false: 2000}, total(t, s)); diff != "" {
		t.Errorf("sums differ (-want +got):\n%s", diff)
	}
	var shards int
	if err := s.Pool.QueryRow(t.Context(), `SELECT count(DISTINCT shard) FROM spend_buckets`).Scan(&shards); err != nil || shards < 8 {
		t.Errorf("the rows have %d shards (%v), want at least 8 of 32", shards, err)
	}
}

func TestOneStatementAddsTransfersAndOthers(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, err := s.Pool.Exec(t.Context(), `WITH spend_change (transfer, lamports) AS (VALUES (true, 5), (false, 7), (true, 6), (false, -7)), spend AS (`+spendSQL+`) SELECT`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[bool]int64{true: 11}, total(t, s)); diff != "" {
		t.Errorf("sums differ (-want +got):\n%s", diff)
	}
}

func TestOldSpendBucketsAreDeleted(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, age := range []time.Duration{0, 23 * time.Hour, 25 * time.Hour, 100 * time.Hour} {
		_, err := s.Pool.Exec(t.Context(), `INSERT INTO spend_buckets VALUES (date_bin('5 minutes', now() - $1::interval, 'epoch'), 1, true, 1)`, age)
		if err != nil {
			t.Fatal(err)
		}
	}
	buckets, err := s.SpendBuckets(t.Context(), spendcap.BucketsKept)
	if err != nil {
		t.Fatal(err)
	}
	var ages []time.Duration
	for _, b := range buckets {
		ages = append(ages, b.Age.Truncate(time.Hour))
	}
	slices.Sort(ages)
	if diff := cmp.Diff([]time.Duration{0, 23 * time.Hour}, ages); diff != "" {
		t.Errorf("buckets of the last day differ (-want +got):\n%s", diff)
	}
	// 48 hours ago, and then a time that would include buckets that the caps need.
	for i, step := range []struct {
		before time.Time
		want   int64
	}{{time.Now().Add(-48 * time.Hour), 1}, {time.Now(), 1}, {time.Now(), 0}} {
		if n, err := s.DeleteSpendBefore(t.Context(), step.before); err != nil || n != step.want {
			t.Errorf("deletion %d deletes %d rows (%v), want %d", i, n, err, step.want)
		}
	}
}
