package stand_test

import (
	"testing"

	"github.com/relaypool/relaypool/hack/throughput/stand"
)

func TestKindNamesTheTables(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ query, want string }{
		"a statement that writes two tables":   {"WITH a AS (INSERT INTO submissions (id) SELECT id FROM given), b AS ( UPDATE attempts SET x = $1) SELECT FROM a", "writes submissions+attempts"},
		"a table that is written twice":        {"WITH a AS (insert into t values ($1)) DELETE FROM t", "writes t"},
		"a statement that locks rows":          {"SELECT id FROM submissions FOR UPDATE SKIP LOCKED", "reads submissions"},
		"a statement that resolves conflicts":  {"INSERT INTO t VALUES ($1) ON CONFLICT (id) DO UPDATE SET x = $2", "writes t"},
		"a statement that reads":               {"SELECT count(*) FROM (SELECT FROM submissions) AS s", "reads submissions"},
		"a statement that reads by a function": {"SELECT s.id FROM unnest($1::uuid[]) AS u (id) JOIN submissions AS s USING (id)", "reads submissions"},
		"a copy":                               {`copy "commitments" ( "pool" ) from stdin binary`, "writes commitments"},
		"a statement without a table":          {"BEGIN", "others"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (&stand.Statement{Query: tc.query}).Kind(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
