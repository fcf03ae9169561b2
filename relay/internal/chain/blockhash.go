package chain

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
)

const (
	methodBlockhash = "getLatestBlockhash"

	// hashRenewAge is the age from which a blockhash in use is replaced in the background;
	// hashMaxAge is the age from which callers wait for the next one.
	hashRenewAge = 500 * time.Millisecond
	hashMaxAge   = time.Second
)

// blockhashes keeps the newest blockhash for all callers.
type blockhashes struct {
	mu     sync.Mutex
	cached onchain.Blockhash
	at     time.Time // when the call for it began, in any process
	ownAt  time.Time // when the last successful call of this process began
	flight *hashFlight
	newest []firstSeen // by endpoint
}

// firstSeen is an endpoint's newest blockhash, and the slot at which it first appeared.
type firstSeen struct {
	hash solana.Hash
	slot uint64
}

// hashFlight is the one call under way. err may be read after done is closed.
type hashFlight struct {
	done chan struct{}
	err  error
}

// LatestBlockhash returns a confirmed blockhash that was the newest one less than about a second
// ago. All callers share it. When it is older than hashRenewAge, one call in the background, or
// another process's blockhash, replaces it. LatestBlockhash fails with onchain.KindNodeBehind if the
// endpoint's blockhash no longer changes or the endpoint is behind the others, and with
// onchain.KindContradiction if the blockhash's slot or height is impossible.
//
// The blockhash's last valid block height is the highest one that the agreement of two endpoints
// allows. With a single endpoint it is the height that the endpoint reports. If there are several
// endpoints and no agreement, it is computed from the slot, as if every slot had a block. The
// computed height is too high rather than too low, so that no single endpoint can make a
// transaction seem expired too early. For the same reason, the returned slot is the highest one
// that any endpoint reports while the endpoints do not agree on the slot.
func (e *Endpoints) LatestBlockhash(ctx context.Context) (onchain.Blockhash, error) {
	b := &e.hashes
	for {
		b.mu.Lock()
		cached, age := b.cached, e.now().Sub(b.at)
		ok := !cached.Hash.IsZero() && age < hashMaxAge
		if ok && age < hashRenewAge {
			b.mu.Unlock()
			return cached, nil
		}
		f := b.flight
		if f == nil {
			f = &hashFlight{done: make(chan struct{})}
			b.flight = f
			// The call serves all callers, so no single caller's context ends it.
			e.backgroundWork.run(func() { e.replaceBlockhash(f) })
		}
		b.mu.Unlock()
		if ok {
			return cached, nil
		}
		select {
		case <-ctx.Done():
			return onchain.Blockhash{}, rpc.Ended(ctx, methodBlockhash)
		case <-f.done:
			if f.err != nil {
				return onchain.Blockhash{}, f.err
			}
		}
	}
}

// replaceBlockhash reads a blockhash, unless another process of the fleet has just read one.
func (e *Endpoints) replaceBlockhash(f *hashFlight) {
	read := func(ctx context.Context) []byte {
		began := e.now()
		h, err := e.readBlockhash(ctx)
		e.hashes.replaced(f, h, began, err, e.maxLag) // callers do not wait until it is shared
		if err != nil || !e.confirms(&h) {
			return nil
		}
		e.hashes.mu.Lock()
		defer e.hashes.mu.Unlock()
		e.hashes.ownAt = began
		return encodeBlockhash(h)
	}
	e.readForFleet(e.background, "blockhash", func(value []byte, age time.Duration) bool {
		h, ok := decodeBlockhash(value)
		if !ok || age >= hashRenewAge || e.ownBlockhashDue() || !e.confirms(&h) {
			return false
		}
		e.hashes.replaced(f, h, e.now().Add(-age), nil, e.maxLag)
		return true
	}, read)
}

// replaced ends the flight with its result, of a call that began at that time.
func (b *blockhashes) replaced(f *hashFlight, got onchain.Blockhash, began time.Time, err error, maxLag uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		// Two nodes that are a slot apart must not make the blockhash alternate, so a slightly
		// older blockhash is not stored.
		if b.at = began; got.Slot >= b.cached.Slot || b.cached.Slot-got.Slot > maxLag {
			b.cached = got
		}
	}
	f.err, b.flight = err, nil
	close(f.done)
}

// readBlockhash reads a blockhash from an endpoint, and checks it.
func (e *Endpoints) readBlockhash(ctx context.Context) (onchain.Blockhash, error) {
	return ask(ctx, e, query[onchain.Blockhash]{
		method: methodBlockhash, urgency: outbound.Read, roles: []Role{RoleRead},
		do: func(ctx context.Context, source askedEndpoint) (onchain.Blockhash, error) {
			h, err := source.LatestBlockhash(ctx)
			if err == nil { // an impossible slot must not reach hashes.check
				err = e.checkSlot(e.all[source.index], methodBlockhash, h.Slot, source.best, false)
			}
			if err == nil {
				err = e.hashes.check(source, h, e.maxLag)
			}
			if err == nil {
				h.LastValidBlockHeight, err = e.verifiedLastValid(ctx, source, h)
			}
			h.Slot = max(h.Slot, e.slots.HighestIfUnknown(e.now()))
			return h, err
		},
	})
}

// check refuses an outdated blockhash: one whose slot is too far behind the best endpoint, or one
// that the endpoint has returned for too many slots.
func (b *blockhashes) check(source askedEndpoint, h onchain.Blockhash, maxLag uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := &b.newest[source.index]
	if seen.hash != h.Hash {
		*seen = firstSeen{h.Hash, h.Slot}
	}
	switch {
	case h.Slot+maxLag < source.best:
		return outdatedBlockhash(h, "its blockhash is of slot %d, %d behind the best endpoint", h.Slot, source.best-h.Slot)
	case h.Slot > seen.slot+maxLag:
		return outdatedBlockhash(h, "its blockhash has not changed for %d slots", h.Slot-seen.slot)
	}
	return nil
}

func outdatedBlockhash(h onchain.Blockhash, format string, args ...any) error {
	return &onchain.Unavailable{Method: methodBlockhash, Kind: onchain.KindNodeBehind, Slot: h.Slot, Detail: fmt.Sprintf(format, args...)}
}
