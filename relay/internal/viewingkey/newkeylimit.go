package viewingkey

import (
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// In one hour, one process accepts at most maxPerHour new keys in total, maxPerAddress from
	// one client address, and maxPerWallet for one wallet. Rows are never deleted, and anybody
	// can make wallets. The limits bound the growth of the table, and keep one client from
	// using up the total.
	maxPerHour    = 3600
	maxPerAddress = 60
	maxPerWallet  = 8
)

// newKeyLimit counts the new keys of the current hour. It keeps the counts only in
// memory, because stored counts would reveal wallets. The zero value is ready.
type newKeyLimit struct {
	mu        sync.Mutex
	hourEnd   time.Time
	total     int
	wallets   map[[32]byte]int
	addresses map[string]int
}

// acquire counts a new key of the wallet and the client address, or refuses it until the
// hour is over. release removes the count of a key that was not stored.
func (a *newKeyLimit) acquire(wallet [32]byte, address string, now time.Time) (release func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !now.Before(a.hourEnd) {
		a.hourEnd, a.total, a.wallets, a.addresses = now.Add(time.Hour), 0, map[[32]byte]int{}, map[string]int{}
	}
	switch {
	case a.wallets[wallet] >= maxPerWallet:
		return nil, refusal.New(refusal.RateLimited,
			"user_pubkey: this wallet has registered %d new viewing keys within an hour, which is the limit; use one that is registered, or come back after Retry-After", maxPerWallet).Retry(a.hourEnd.Sub(now))
	case a.addresses[address] >= maxPerAddress:
		return nil, refusal.New(refusal.RateLimited,
			"your address has registered %d new viewing keys within an hour, which is the limit; registered keys still work; register new ones after Retry-After", maxPerAddress).Retry(a.hourEnd.Sub(now))
	case a.total >= maxPerHour:
		return nil, refusal.New(refusal.RateLimited,
			"this relay has registered %d new viewing keys within an hour, which is the limit; registered keys still work; register new ones after Retry-After", maxPerHour).Retry(a.hourEnd.Sub(now))
	}
	a.total++
	a.wallets[wallet]++
	a.addresses[address]++
	hour := a.hourEnd
	return func() { a.release(wallet, address, hour) }, nil
}

// release removes the count of a key, unless the hour in which it was counted is over.
func (a *newKeyLimit) release(wallet [32]byte, address string, hour time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hourEnd.Equal(hour) {
		a.total--
		a.wallets[wallet]--
		a.addresses[address]--
	}
}
