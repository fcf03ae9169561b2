package app

import (
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/ledger"
)

// ledgerGrace is the longest time for which submissions are kept beyond the configured retention,
// if the ledger has not read their transactions. Without the submissions, the ledger would count
// the transactions as unknown, which raises an alert.
const ledgerGrace = 7 * 24 * time.Hour

// submissionRetention returns how long finished submissions are kept: as configured, plus the
// lag of the ledger up to ledgerGrace.
func submissionRetention(retention time.Duration, payers []solana.PublicKey, cursors []ledger.Cursor, now time.Time) time.Duration {
	checked := map[solana.PublicKey]time.Time{}
	for i := range cursors {
		checked[cursors[i].Payer] = cursors[i].CheckedAt
	}
	oldest := now
	for _, payer := range payers {
		if at := checked[payer]; at.Before(oldest) { // the zero time means never read
			oldest = at
		}
	}
	return retention + min(ledgerGrace, now.Sub(oldest))
}
