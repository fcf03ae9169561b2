package chain

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
)

// An endpoint may return old state as if it were current: its slot is current, but its tree is, for
// example, a minute old. The tree account is therefore read at every endpoint from time to time,
// and before a root counts as stale.

const (
	// readAllInterval is the interval at which all endpoints are read while callers ask for the
	// tree.
	readAllInterval = 2 * time.Second
	// openBreakerTimeout bounds the wait for an endpoint with an open breaker. Such an endpoint may
	// hang, and must not delay the reads of the others.
	openBreakerTimeout = 500 * time.Millisecond
)

// AccountAt is one endpoint's answer about an account, with the slot of the answer. Account is nil
// when the account does not exist. Slot is 0 when the endpoint reported a slot that the chain
// cannot have reached. Endpoint is the endpoint's place in the configuration.
type AccountAt struct {
	Account  *onchain.Account
	Slot     uint64
	Endpoint int
}

// AccountAtAll reads a confirmed account at every endpoint at once. Endpoints that do not answer
// soon are left out. An endpoint with an open breaker is asked too, with a shorter timeout: failed
// sends may have opened the breaker although reads succeed, and the only endpoint with a closed
// breaker may be behind.
func (e *Endpoints) AccountAtAll(ctx context.Context, key solana.PublicKey) (all []AccountAt) {
	q := currentQuery("getMultipleAccounts", outbound.Read, func(ctx context.Context, source askedEndpoint) (slotted[[]*onchain.Account], error) {
		return newSlotted(source.Accounts(ctx, []solana.PublicKey{key}, onchain.Confirmed, 0))
	})
	var mu sync.Mutex
	var running sync.WaitGroup
	for _, ep := range e.candidates(q.roles, q.method, q.urgency) {
		permit := ep.breaker.Force()
		running.Go(func() {
			ctx, cancel := ctx, func() {}
			if ep.breaker.State() != outbound.Closed {
				ctx, cancel = context.WithTimeoutCause(ctx, openBreakerTimeout, rpc.ErrLimit)
			}
			defer cancel()
			s, err := attempt(ctx, e, ep, permit, q, 2)
			if onchain.KindOf(err) == onchain.KindContradiction && len(s.value) == 1 {
				s.slot, err = 0, nil
			}
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, AccountAt{s.value[0], s.slot, ep.index})
		})
	}
	running.Wait()
	return all
}

// errNoAnswer reports that no endpoint returned the tree account when all were asked.
var errNoAnswer = fmt.Errorf("%w: no endpoint returned the tree account when all were asked", onchain.ErrUnavailable)

// readAll reads the tree at every endpoint. The read starts after the call, and waiting callers
// share it.
func (p *PoolReader) readAll(ctx context.Context) (reading, error) {
	since := p.now()
	for {
		done := p.flight.DoChan("everywhere", func() (any, error) { return p.readAllNow(context.WithoutCancel(ctx)), nil })
		select {
		case <-ctx.Done():
			return reading{}, unavailable(ctx.Err())
		case r := <-done:
			if got, ok := r.Val.(reading); ok && !got.at.Before(since) {
				return got, nil
			}
		}
	}
}

// startReadAll starts a read of the tree at every endpoint if the last such read is old. It does
// not wait for the answers.
func (p *PoolReader) startReadAll(ctx context.Context) {
	p.mu.Lock()
	due := p.allEndpoints != nil && p.now().Sub(p.readAllAt) >= readAllInterval &&
		(p.agreed == nil || p.now().Sub(p.agreed.At) >= readAllInterval) // another process may have read them
	p.mu.Unlock()
	if due {
		p.flight.DoChan("everywhere", func() (any, error) { return p.readAllNow(context.WithoutCancel(ctx)), nil })
	}
}

// readAllNow reads the tree account at every endpoint when the interval allows it. The newest of
// the trees becomes the known tree if replacesKnown permits it. Only one call runs at a time.
func (p *PoolReader) readAllNow(ctx context.Context) reading {
	p.mu.Lock()
	last := p.readAllAt
	p.mu.Unlock()
	p.pause(last)
	r := reading{at: p.now()}
	p.mu.Lock()
	p.readAllAt = r.at
	p.mu.Unlock()
	reported := p.allEndpoints(ctx, p.pool.MerkleTree)

	p.updating.Lock()
	defer p.updating.Unlock()
	var best AccountAt
	var newest onchain.Snapshot
	var answered, upToDate []int
	for _, t := range reported {
		s, err := p.parse(t.Account, t.Slot, r.at)
		if err != nil {
			continue
		}
		if t.Slot == 0 {
			s.Doubtful = true
			r.wrongSlot = append(r.wrongSlot, s)
			upToDate = append(upToDate, t.Endpoint)
			continue
		}
		s.Doubtful = !p.corroborated(s.Slot)
		r.all, answered = append(r.all, s), append(answered, t.Endpoint)
		if newest.Tree == nil || newer(s, newest) {
			best, newest = t, s
		}
	}
	for i, s := range r.all {
		if s.Slot >= lowestUpToDate(r.all) {
			upToDate = append(upToDate, answered[i])
		}
	}
	p.alone.note(upToDate, r.at)
	switch {
	case newest.Tree == nil:
		r.err = unavailable(errNoAnswer)
	case p.replacesKnown(newest, r.all, r.at):
		r.snapshot = p.keep(newest, best.Account.Data)
	default:
		r.snapshot = p.confirmKnown(r.at)
	}
	if r.agreedErr = r.err; r.err == nil {
		r.agreed, r.agreedErr = p.agree(r.all, r.at)
	}
	return r
}

// parse makes a snapshot of an endpoint's answer. A known tree is not checked again.
func (p *PoolReader) parse(a *onchain.Account, slot uint64, at time.Time) (onchain.Snapshot, error) {
	last := p.cached()
	if a == nil || !a.Owner.Equals(p.pool.Profile.ProgramID) {
		if last != nil {
			// The program never closes a pool, so this endpoint has lost the account.
			return onchain.Snapshot{}, unavailable(onchain.Malformed("getMultipleAccounts", "the merkle_tree account existed before and is missing now: the endpoint's state is incomplete"))
		}
		return onchain.Snapshot{}, p.notInitialised(a)
	}
	if last != nil && bytes.Equal(a.Data, p.data) {
		return onchain.Snapshot{Tree: last.Tree, Slot: slot, At: at, Checked: last.Checked}, nil
	}
	tree, err := p.pool.Profile.ParseTree(a.Data)
	if err != nil {
		return onchain.Snapshot{}, p.malformedAccount(err)
	}
	return onchain.Snapshot{Tree: tree, Slot: slot, At: at, Checked: tree.SelfCheck() == nil}, nil
}
