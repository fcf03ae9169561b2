package chain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

// slotted is a value and the slot at which it was read.
type slotted[T any] struct {
	value T
	slot  uint64
}

func slotOf[T any](s slotted[T]) uint64 { return s.slot }

func newSlotted[T any](value T, slot uint64, err error) (slotted[T], error) {
	return slotted[T]{value, slot}, err
}

// currentQuery returns a query for the newest state.
func currentQuery[T any](method string, urgency outbound.Urgency, do func(context.Context, askedEndpoint) (slotted[T], error)) query[slotted[T]] {
	return query[slotted[T]]{method: method, urgency: urgency, roles: []Role{RoleRead}, do: do, slot: slotOf[T]}
}

// historyQuery returns a query for history. Archives are asked first.
func historyQuery[T any](method string, urgency outbound.Urgency, do func(context.Context, askedEndpoint) (T, error)) query[T] {
	return query[T]{method: method, urgency: urgency, roles: []Role{RoleArchive, RoleRead}, do: do}
}

// Slot reads the newest slot of the commitment.
func (e *Endpoints) Slot(ctx context.Context, commitment onchain.Commitment) (uint64, error) {
	q := currentQuery("getSlot", outbound.Read, func(ctx context.Context, source askedEndpoint) (slotted[uint64], error) {
		slot, err := source.Slot(ctx, commitment)
		return slotted[uint64]{slot, slot}, err
	})
	q.unconfirmed = commitment != onchain.Confirmed
	s, err := ask(ctx, e, q)
	return s.value, err
}

// Accounts reads up to 100 accounts at one slot, and returns that slot. The slot is not before
// minContextSlot. The entry of an account that does not exist is nil. If keys is a single account,
// such as the pool's tree, and it does not exist, Accounts asks a second endpoint. It uses the
// second answer if that contains the account.
func (e *Endpoints) Accounts(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error) {
	return e.readAccounts(ctx, commitment, func(ctx context.Context, source askedEndpoint) (slotted[[]*onchain.Account], error) {
		return newSlotted(source.Accounts(ctx, keys, commitment, minContextSlot))
	})
}

// Owners reads as Accounts does, but without the accounts' data.
func (e *Endpoints) Owners(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error) {
	return e.readAccounts(ctx, commitment, func(ctx context.Context, source askedEndpoint) (slotted[[]*onchain.Account], error) {
		return newSlotted(source.Owners(ctx, keys, commitment, minContextSlot))
	})
}

func (e *Endpoints) readAccounts(ctx context.Context, commitment onchain.Commitment, do func(context.Context, askedEndpoint) (slotted[[]*onchain.Account], error)) ([]*onchain.Account, uint64, error) {
	q := currentQuery("getMultipleAccounts", outbound.Read, do)
	q.unconfirmed = commitment != onchain.Confirmed
	s, err := askAgain(ctx, e, q, secondOpinion[slotted[[]*onchain.Account]]{
		doubtful: func(s slotted[[]*onchain.Account]) bool { return len(s.value) == 1 && s.value[0] == nil },
		again:    q.do,
		combine:  fewerMissing(func(a *onchain.Account) bool { return a == nil }),
	})
	return s.value, s.slot, err
}

// Balance reads an account's confirmed lamports, and returns the slot of the reading too. The slot
// is not before minContextSlot. An account that does not exist has 0 lamports. If the answer is 0,
// Balance asks a second endpoint, as Balances does.
func (e *Endpoints) Balance(ctx context.Context, key solana.PublicKey, minContextSlot uint64) (lamports, slot uint64, err error) {
	v, slot, err := e.lamports(ctx, "getBalance", func(ctx context.Context, source askedEndpoint) (slotted[[]uint64], error) {
		lamports, slot, err := source.Balance(ctx, key, minContextSlot)
		return slotted[[]uint64]{[]uint64{lamports}, slot}, err
	})
	if err != nil {
		return 0, 0, err
	}
	return v[0], slot, nil
}

// Balances reads the confirmed lamports of up to 100 accounts at one slot, in the order of the
// keys, and returns that slot. An account that does not exist has 0. A node that has lost an
// account reports 0 too. So if an account has 0, Balances asks a second endpoint, and uses the
// second answer if fewer accounts have 0 there.
func (e *Endpoints) Balances(ctx context.Context, keys []solana.PublicKey) (lamports []uint64, slot uint64, err error) {
	return e.lamports(ctx, "getMultipleAccounts", func(ctx context.Context, source askedEndpoint) (slotted[[]uint64], error) {
		return newSlotted(source.Balances(ctx, keys))
	})
}

func (e *Endpoints) lamports(ctx context.Context, method string, do func(context.Context, askedEndpoint) (slotted[[]uint64], error)) ([]uint64, uint64, error) {
	s, err := askAgain(ctx, e, currentQuery(method, outbound.Read, do), secondOpinion[slotted[[]uint64]]{
		doubtful: func(s slotted[[]uint64]) bool { return slices.Contains(s.value, 0) },
		again:    do,
		combine:  fewerMissing(func(lamports uint64) bool { return lamports == 0 }),
	})
	return s.value, s.slot, err
}

// sharedFeesMaxAge is the age up to which priority fees that another process has read are used.
const sharedFeesMaxAge = time.Second

// PriorityFees returns one fee for each recent block, in micro-lamports a compute unit: the lowest
// priority fee among the block's transactions that write the accounts. The fees may be of another process of
// the fleet; those of this one are shared before PriorityFees returns.
func (e *Endpoints) PriorityFees(ctx context.Context, writable []solana.PublicKey) (fees []uint64, err error) {
	e.readForFleet(ctx, fmt.Sprintf("priority fees for %s", writable), func(value []byte, age time.Duration) bool {
		return age < sharedFeesMaxAge && json.Unmarshal(value, &fees) == nil
	}, func(ctx context.Context) []byte {
		fees, err = ask(ctx, e, query[[]uint64]{
			method: "getRecentPrioritizationFees", urgency: outbound.Read, roles: []Role{RoleRead},
			do: func(ctx context.Context, source askedEndpoint) ([]uint64, error) {
				return source.PriorityFees(ctx, writable)
			},
		})
		value, marshalErr := json.Marshal(fees)
		if err != nil || marshalErr != nil {
			return nil
		}
		return value
	})
	return fees, err
}

// Statuses looks up at most 256 signatures in about the last 150 blocks, and returns the
// endpoint's slot. The entry of an unknown signature is nil, which proves nothing: only Search
// can prove that a transaction expired. With several endpoints, a decisive status that only one
// of them reports is unverified.
func (e *Endpoints) Statuses(ctx context.Context, signatures []solana.Signature) ([]*onchain.Status, uint64, error) {
	// The slot is a processed one, so it does not show how far the endpoint is behind.
	s, origin, err := askWithIndex(ctx, e, query[slotted[[]*onchain.Status]]{
		method: "getSignatureStatuses", urgency: outbound.Read, roles: []Role{RoleRead}, slot: slotOf[[]*onchain.Status], unconfirmed: true,
		do: func(ctx context.Context, source askedEndpoint) (slotted[[]*onchain.Status], error) {
			return newSlotted(source.Statuses(ctx, signatures, false))
		},
	})
	if err != nil {
		return nil, 0, err
	}
	return e.corroborateStatuses(ctx, origin, signatures, s), s.slot, nil
}

// SignaturesFor is History.SignaturesFor with the best endpoint first.
func (e *Endpoints) SignaturesFor(ctx context.Context, address solana.PublicKey, commitment onchain.Commitment, before, until solana.Signature, limit int) ([]onchain.SignatureInfo, error) {
	return (&History{Endpoints: e}).SignaturesFor(ctx, address, commitment, before, until, limit)
}

// Blocks lists the slots that have a confirmed block, between from and to, both included. RPC
// nodes limit the range to 500 000 slots.
func (e *Endpoints) Blocks(ctx context.Context, from, to uint64) ([]uint64, error) {
	return ask(ctx, e, historyQuery("getBlocks", outbound.Background, func(ctx context.Context, source askedEndpoint) ([]uint64, error) {
		return source.Blocks(ctx, from, to)
	}))
}

// Payment reads what a finalized transaction did to an account's lamports; nil when no
// endpoint knows the transaction as finalized. It fails when the transaction does not name
// the account.
func (e *Endpoints) Payment(ctx context.Context, signature solana.Signature, account solana.PublicKey) (*onchain.Payment, error) {
	q := historyQuery("getTransaction", outbound.Background, func(ctx context.Context, source askedEndpoint) (*onchain.Payment, error) {
		return source.Payment(ctx, signature, account)
	})
	q.unknown = isNil[onchain.Payment]
	return ask(ctx, e, q)
}

func isNil[T any](v *T) bool { return v == nil }
