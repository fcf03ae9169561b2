package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStacksBelongToTheFirstPartThatHasOneOfTheirFunctions(t *testing.T) {
	t.Parallel()
	traces := `File: relay
Type: alloc_space
-----------+-------------------------------------------------------
     bytes:  16B
    1.50kB   encoding/json.Unmarshal
             github.com/relaypool/relaypool/relay/internal/httpapi.(*api).Transact
             net/http.(*conn).serve
-----------+-------------------------------------------------------
       2kB   runtime.gcAssistAlloc
             github.com/relaypool/relaypool/relay/groth16.(*Key).VerifyBatch
-----------+-------------------------------------------------------
         4   github.com/jackc/pgx/v5.(*Conn).Query
             net/http.(*conn).serve
-----------+-------------------------------------------------------
       8kB   time.Now
-----------+-------------------------------------------------------
`
	got, err := sumByPart([]byte(traces))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"HTTP, JSON, admission": 1.5, "garbage collection": 2, "Postgres client": 4, "the rest": 8}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("sums (-got +want):\n%s", diff)
	}
	if _, err := sumByPart([]byte("\n-----------+--\n   x  f\n")); err == nil {
		t.Error("no error for a value that is no number, want one")
	}
}

func TestCountsOfEachAreSorted(t *testing.T) {
	t.Parallel()
	got := perEach(map[string]int64{"a": 1}, map[string]int64{"a": 11, "b": 30, "rare": 0}, 10)
	if want := "b 3.00, a 1.00"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
