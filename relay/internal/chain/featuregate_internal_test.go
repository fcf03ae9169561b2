package chain

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
)

// TestAFeatureGateThatIsNotReadIsReadAgainSoon: a relay that starts while its endpoints are away
// takes longer notes seconds after they are back.
func TestAFeatureGateThatIsNotReadIsReadAgainSoon(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	active := &onchain.Account{Owner: featureProgram, Data: make([]byte, gateLength)}
	active.Data[0] = 1
	type answer struct {
		account *onchain.Account
		err     error
	}
	fails, pending, activated := answer{nil, down}, answer{nil, nil}, answer{active, nil}
	for name, test := range map[string]struct {
		answers      []answer
		want         []time.Duration // the times of the reads
		wantWarnings int
	}{
		"active at once":      {[]answer{activated}, []time.Duration{0}, 0},
		"pending":             {[]answer{pending, pending, activated}, []time.Duration{0, time.Minute, 2 * time.Minute}, 0},
		"three reads fail":    {[]answer{fails, fails, fails, activated}, []time.Duration{0, 2 * time.Second, 6 * time.Second, 14 * time.Second}, 1},
		"fails, then pending": {[]answer{fails, pending, activated}, []time.Duration{0, 2 * time.Second, 62 * time.Second}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				var got []time.Duration
				began := time.Now()
				g := &FeatureGate{log: slog.New(slog.NewTextHandler(&log, nil)), account: func(context.Context, solana.PublicKey) (*onchain.Account, error) {
					got = append(got, time.Since(began))
					a := test.answers[min(len(got), len(test.answers))-1]
					return a.account, a.err
				}}
				g.Run(t.Context())
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("times of the reads (-want +got)\n%s", diff)
				}
				if n := strings.Count(log.String(), "level=WARN"); n != test.wantWarnings {
					t.Errorf("the log has %d warnings, want %d:\n%s", n, test.wantWarnings, &log)
				}
			})
		})
	}
}
