package chain

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/judge"
	"github.com/relaypool/relaypool/relay/internal/ledger"
)

const (
	// hashFresh is the age from which a blockhash that is used is replaced in the
	// background; hashOld is the age from which callers wait for the next one.
	hashFresh = 500 * time.Millisecond
	hashOld   = time.Second
	// heightRecent is how long the highest last valid block height counts, in case
	// that it was wrong.
	heightRecent = 30 * time.Second
)

// blockhashes keeps the newest blockhash for all callers.
type blockhashes struct {
	mu     sync.Mutex
	held   ledger.Blockhash
	at     time.Time // when the call for held began
	flight *hashFlight
	// height is the highest last valid block height of any endpoint, seen at heightAt.
	height   uint64
	heightAt time.Time
	first    []firstSeen // by endpoint
}

// firstSeen is an endpoint's newest blockhash, and the slot at which it came up.
type firstSeen struct {
	hash solana.Hash
	slot uint64
}

// hashFlight is the one call under way; err may be read once done is closed.
type hashFlight struct {
	done chan struct{}
	err  error
}

// LatestBlockhash gives a confirmed blockhash that was the newest less than
// about a second ago, shared by all callers. While it is used it is replaced in
// the background, by one call at a time. It is never one that is frozen, nor
// from an endpoint that is behind the others: then ledger.KindNodeBehind.
func (e *Endpoints) LatestBlockhash(ctx context.Context) (ledger.Blockhash, error) {
	b := &e.hashes
	for {
		b.mu.Lock()
		held, age := b.held, e.now().Sub(b.at)
		have := !held.Hash.IsZero() && age < hashOld
		if have && age < hashFresh {
			b.mu.Unlock()
			return held, nil
		}
		f := b.flight
		if f == nil {
			f = &hashFlight{done: make(chan struct{})}
			b.flight = f
			// It serves all callers, so that none of them ends it.
			e.working.run(func() { e.replaceBlockhash(f) })
		}
		b.mu.Unlock()
		if have {
			return held, nil
		}
		select {
		case <-ctx.Done():
			return ledger.Blockhash{}, ended(ctx, "getLatestBlockhash")
		case <-f.done:
			if f.err != nil {
				return ledger.Blockhash{}, f.err
			}
		}
	}
}

func (e *Endpoints) replaceBlockhash(f *hashFlight) {
	began := e.now()
	got, err := ask(e.background, e, query[ledger.Blockhash]{
		method: "getLatestBlockhash", urgency: judge.Read, roles: []Role{RoleRead},
		do: func(ctx context.Context, at asked) (ledger.Blockhash, error) {
			h, err := at.LatestBlockhash(ctx)
			if err == nil {
				err = e.hashes.check(at, h, e.maxLag, e.now())
			}
			return h, err
		},
		slot: func(h ledger.Blockhash) uint64 { return h.Slot },
	})
	b := &e.hashes
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		// Two nodes a slot apart must not take it back and forth.
		if b.at = began; got.Slot >= b.held.Slot || b.held.Slot-got.Slot > e.maxLag {
			b.held = got
		}
	}
	f.err, b.flight = err, nil
	close(f.done)
}

// check refuses a blockhash that is older than it should be: behind the slot or
// the height that any endpoint has told, or the same for too many slots.
func (b *blockhashes) check(at asked, h ledger.Blockhash, maxLag uint64, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.heightAt) > heightRecent {
		b.height = 0
	}
	seen := &b.first[at.index]
	if seen.hash != h.Hash {
		*seen = firstSeen{h.Hash, h.Slot}
	}
	behind := func(format string, args ...any) error {
		return &ledger.Unavailable{Method: "getLatestBlockhash", Kind: ledger.KindNodeBehind, Slot: h.Slot, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case h.Slot+maxLag < at.best:
		return behind("its blockhash is of slot %d, %d behind the best endpoint", h.Slot, at.best-h.Slot)
	case h.LastValidBlockHeight+maxLag < b.height:
		return behind("its blockhash is valid up to height %d, %d below the best endpoint's", h.LastValidBlockHeight, b.height-h.LastValidBlockHeight)
	case h.Slot > seen.slot+maxLag:
		return behind("its blockhash has not changed for %d slots", h.Slot-seen.slot)
	}
	if h.LastValidBlockHeight >= b.height {
		b.height, b.heightAt = h.LastValidBlockHeight, now
	}
	return nil
}
