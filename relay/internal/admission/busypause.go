package admission

import (
	"sync"
	"time"
)

const (
	// maxPause bounds the mean Retry-After of a busy pool, in seconds.
	maxPause = 16
	// rateSpan is how many seconds the rate of acceptance is the mean of.
	rateSpan = 4
	// unknownPause is the bound while this process accepts nothing: others may accept all, and then
	// places come free sooner than its own rate tells.
	unknownPause = 4
)

// busyPause computes the Retry-After of a busy pool. When n clients wait and the relay accepts a
// submissions a second, the turn of a client comes after n/a seconds. If all tried again each second,
// their refusals would take the time that landings need. n is the number of refusals within the last
// pause, since each waiting client is refused once in that time. The answers differ by up to a half
// from their mean, so that clients which came together do not come together again.
type busyPause struct {
	mu      sync.Mutex
	seconds [maxPause]second // by Unix time modulo maxPause
	pause   int64            // in seconds, since the second at
	at      int64
	answers int64 // how many pauses were returned
}

type second struct {
	at                int64 // Unix time
	refused, accepted int
}

func (b *busyPause) countAccepted(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current(now.Unix()).accepted++
}

// countRefused returns how long the refused client should wait.
func (b *busyPause) countRefused(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if unix := now.Unix(); unix != b.at { // once a second, because the counts are of whole seconds
		refused, _ := b.last(unix, max(b.pause, 1))
		_, accepted := b.last(unix, rateSpan)
		most := int64(maxPause)
		if accepted == 0 {
			most = unknownPause
		}
		b.pause, b.at = min(max(int64(refused*rateSpan/max(accepted, 1)), 1), most), unix
	}
	b.current(now.Unix()).refused++
	b.answers++
	spread := b.pause / 2
	return time.Duration(b.pause-spread+b.answers%(2*spread+1)) * time.Second
}

func (b *busyPause) current(unix int64) *second {
	s := &b.seconds[unix%maxPause]
	if s.at != unix {
		*s = second{at: unix}
	}
	return s
}

// last sums the counts of the n seconds before a second.
func (b *busyPause) last(unix, n int64) (refused, accepted int) {
	for _, s := range b.seconds {
		if unix-n <= s.at && s.at < unix {
			refused, accepted = refused+s.refused, accepted+s.accepted
		}
	}
	return refused, accepted
}
