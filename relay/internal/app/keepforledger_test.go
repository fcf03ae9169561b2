package app

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/ledger"
)

func TestSubmissionsAreKeptUntilTheLedgerHasReadThem(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	one, two := solana.PublicKey{1}, solana.PublicKey{2}
	const day, week = 24 * time.Hour, 7 * 24 * time.Hour
	at := func(payer solana.PublicKey, ago time.Duration) ledger.Cursor {
		return ledger.Cursor{Payer: payer, CheckedAt: now.Add(-ago)}
	}
	for name, tc := range map[string]struct {
		cursors []ledger.Cursor
		want    time.Duration
	}{
		"all are read":                   {[]ledger.Cursor{at(one, 0), at(two, 0)}, day},
		"one is behind":                  {[]ledger.Cursor{at(one, 0), at(two, 3*time.Hour)}, day + 3*time.Hour},
		"one has never been read":        {[]ledger.Cursor{at(one, 0)}, day + week},
		"one was last read long ago":     {[]ledger.Cursor{at(one, 0), at(two, 100*day)}, day + week},
		"a former payer is behind":       {[]ledger.Cursor{at(one, 0), at(two, 0), at(solana.PublicKey{3}, 5*day)}, day},
		"another relay's clock is ahead": {[]ledger.Cursor{at(one, -time.Second), at(two, 0)}, day},
	} {
		if got := submissionRetention(day, []solana.PublicKey{one, two}, tc.cursors, now); got != tc.want {
			t.Errorf("%s: kept for %s, want %s", name, got, tc.want)
		}
	}
}
