package config_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/config"
)

func parseAttemptList(t *testing.T, args ...string) (l config.AttemptList, endpoints int, err error) {
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
	_, found, err := l.Load()
	return l, len(found), err
}

func TestAttemptList(t *testing.T) {
	t.Parallel()
	l, endpoints, err := parseAttemptList(t)
	if err != nil || l.End || l.Older != 5*time.Minute || l.Wait != 3*time.Minute || l.Limit != 200 || endpoints != 0 {
		t.Errorf("defaults: %+v with %d endpoints, error %v", l, endpoints, err)
	}
	l, endpoints, err = parseAttemptList(t, "--end", "--rpc-url=http://127.0.0.1:8899", "--wait=1m", "--older=0s", "--limit=7")
	if err != nil || !l.End || l.Older != 0 || l.Wait != time.Minute || l.Limit != 7 || endpoints != 1 {
		t.Errorf("all flags: %+v with %d endpoints, error %v", l, endpoints, err)
	}
	_, _, err = parseAttemptList(t, "--database-url-file=", "--end", "--older=-1s", "--wait=-1s", "--limit=0", "--log-level="+canary)
	var problems commandline.Problems
	if !errors.As(err, &problems) || len(problems) != 6 || strings.Contains(err.Error(), canary) {
		t.Errorf("want six problems without their values, received %v", err)
	}
}
