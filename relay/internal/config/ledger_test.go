package config_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/config"
)

func parseLedger(t *testing.T, args ...string) (*config.LedgerRequest, error) {
	t.Helper()
	var l config.Ledger
	malformed := commandline.NewMalformed()
	parser, err := kong.New(&l, malformed.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := parser.Parse(append([]string{"--database-url-file=" + file(t, "postgres://h/"+canary)}, args...))
	if err != nil {
		t.Fatal(err)
	}
	l.EarlierProblems = malformed.Of(ctx.Flags())
	return l.Load()
}

func TestLedger(t *testing.T) {
	t.Parallel()
	day := func(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC) }
	tests := map[string]struct {
		args          []string
		from, until   time.Time
		wantEndpoints int
	}{
		"everything up to now": {},
		"one day":              {args: []string{"--from=2026-11-21", "--to=2026-11-21"}, from: day(21), until: day(22)},
		"from a day on":        {args: []string{"--from=2026-11-20"}, from: day(20)},
		"up to a day":          {args: []string{"--to=2026-11-20", "--json"}, until: day(21)},
		"compared with the chain at one endpoint":  {args: []string{"--rpc-url=http://127.0.0.1:8899"}, wantEndpoints: 1},
		"compared with the chain at two endpoints": {args: []string{"--rpc-endpoints-file=" + file(t, "[{name: a, url: 'http://h'}, {name: b, url: 'http://i'}]")}, wantEndpoints: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := parseLedger(t, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]time.Time{tc.from, tc.until}, []time.Time{p.From, p.Until}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(p.Endpoints) != tc.wantEndpoints || !strings.Contains(p.DatabaseURL.Reveal(), canary) {
				t.Errorf("%d endpoints, want %d and the database's URL", len(p.Endpoints), tc.wantEndpoints)
			}
		})
	}
}

func TestLedgerListsEveryProblemAndNoValue(t *testing.T) {
	t.Parallel()
	_, err := parseLedger(t, "--database-url-file=", "--rpc-url=ws://"+canary, "--from="+canary, "--to=2026-13-01"+canary, "--log-level="+canary)
	var problems commandline.Problems
	if !errors.As(err, &problems) || len(problems) != 5 || strings.Contains(err.Error(), canary) {
		t.Errorf("want five problems without their values, received %v", err)
	}
	_, err = parseLedger(t, "--from=2026-11-22", "--to=2026-11-21")
	if err == nil || !strings.Contains(err.Error(), "expected a day not after --to") {
		t.Errorf("a period that ends before it begins: error %v, want a problem of --from", err)
	}
}
