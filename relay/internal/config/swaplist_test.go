package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/config"
)

func parseSwapList(t *testing.T, args ...string) (l config.SwapList, endpoints int, err error) {
	t.Helper()
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
	url, found, err := l.Load()
	if err == nil && !strings.Contains(url.Reveal(), canary) {
		t.Error("the database's URL is not the one in the file")
	}
	return l, len(found), err
}

func TestSwapList(t *testing.T) {
	t.Parallel()
	type settings struct {
		All, Overdue, JSON bool
		Limit, Endpoints   int
	}
	tests := map[string]struct {
		args []string
		want settings
	}{
		"the defaults":      {nil, settings{Limit: 200}},
		"everything":        {[]string{"--all", "--json", "--limit=7"}, settings{All: true, JSON: true, Limit: 7}},
		"overdue swaps":     {[]string{"--overdue", "--rpc-url=http://127.0.0.1:8899"}, settings{Overdue: true, Limit: 200, Endpoints: 1}},
		"several endpoints": {[]string{"--rpc-endpoints-file=" + file(t, "[{name: a, url: 'http://h'}, {name: b, url: 'http://i'}]")}, settings{Limit: 200, Endpoints: 2}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, endpoints, err := parseSwapList(t, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, settings{l.All, l.Overdue, l.JSON, l.Limit, endpoints}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSwapListListsEveryProblemAndNoValue(t *testing.T) {
	t.Parallel()
	_, _, err := parseSwapList(t, "--database-url-file=", "--rpc-url=ws://"+canary, "--all", "--overdue", "--limit=0", "--log-level="+canary)
	var problems commandline.Problems
	if !errors.As(err, &problems) || len(problems) != 5 || strings.Contains(err.Error(), canary) {
		t.Errorf("want five problems without their values, received %v", err)
	}
	if _, _, err = parseSwapList(t, "--limit="+canary); err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("a limit that is not a number: error %v, want one without the value", err)
	}
}
