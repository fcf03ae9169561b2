package viewingkey

import (
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// newPerHour is how many new keys one process takes in an hour, and newPerWallet
	// how many of them for one wallet. Rows are never deleted, and whoever makes
	// wallets can register keys without end: this bounds what the table grows by.
	newPerHour   = 3600
	newPerWallet = 8
)

// allowance counts the new keys of the hour, in memory alone: what is stored
// tells no wallet. The zero value is ready.
type allowance struct {
	mu      sync.Mutex
	until   time.Time
	all     int
	wallets map[[32]byte]int
}

// take counts a new key of the wallet, or refuses it until the hour is over.
func (a *allowance) take(wallet [32]byte, now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !now.Before(a.until) {
		a.until, a.all, a.wallets = now.Add(time.Hour), 0, map[[32]byte]int{}
	}
	switch {
	case a.wallets[wallet] >= newPerWallet:
		return refusal.New(refusal.RateLimited,
			"user_pubkey: this wallet has registered %d new viewing keys within an hour: expected at most so many; use one that is registered, or come back after Retry-After", newPerWallet).Retry(a.until.Sub(now))
	case a.all >= newPerHour:
		return refusal.New(refusal.RateLimited,
			"this relay has registered %d new viewing keys within an hour: expected at most so many; one that is registered already is answered as ever, a new one after Retry-After", newPerHour).Retry(a.until.Sub(now))
	}
	a.all++
	a.wallets[wallet]++
	return nil
}
