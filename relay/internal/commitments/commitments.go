// Package commitments keeps the pool's leaves in the tree's order, so that a
// client can rebuild the Merkle tree. It reads them from the chain's blocks and
// publishes a prefix only when the root recomputed from it is one that the
// chain's tree account confirms: order inside a slot, short histories and dead
// forks have all given other relays a complete list with the wrong root.
package commitments

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// ErrMoved says that another pod has changed the index since it was read.
var ErrMoved = errors.New("another relay has moved the commitment index")

// Position is how far the index is: Leaves are stored, Published of them
// confirmed by the chain, and every slot up to Slot is read whole.
type Position struct{ Leaves, Published, Slot uint64 }

// Placed is a leaf read from the chain, and the slot that appended it.
type Placed struct {
	Commitment [32]byte
	Slot       uint64
}

// Store keeps the leaves. Writes name the position that they start from, and
// give ErrMoved, changing nothing, when it is another by now.
type Store interface {
	Position(ctx context.Context) (Position, error)
	// Append adds leaves after the position; slot is then read whole.
	Append(ctx context.Context, from Position, leaves []Placed, slot uint64) error
	Publish(ctx context.Context, from Position, published uint64) error
	// Truncate forgets all leaves but the first ones, to be read again.
	Truncate(ctx context.Context, from Position, leaves uint64) error
	// Read gives the leaves of [from, to), at most limit.
	Read(ctx context.Context, from, to uint64, limit int) ([]Leaf, error)
	Find(ctx context.Context, commitment [32]byte) (index uint64, ok bool, err error)
}

// Chain reads confirmed history.
type Chain interface {
	// SignaturesFor lists an address's transactions, newest first, before a
	// signature and down to another, both exclusive; zero ones do not bound.
	SignaturesFor(ctx context.Context, address solana.PublicKey, before, until solana.Signature, limit int) ([]ledger.SignatureInfo, error)
	Block(ctx context.Context, slot uint64) (*ledger.Block, error)
}

// Tree reads the pool's tree account: the checkpoint.
type Tree interface {
	Tree(ctx context.Context, maxAge time.Duration) (ledger.Snapshot, error)
}

// Options configure a Follower. All are needed.
type Options struct {
	Store Store
	Chain Chain
	Tree  Tree
	Pool  *shieldpool.Pool
	Log   *slog.Logger
	Now   func() time.Time
	// Interval is the time between two looks at the tree.
	Interval time.Duration
}

// Report is how the index stands.
type Report struct {
	// Indexed leaves are stored, Published are served, ChainNext are on the chain.
	Indexed, Published, ChainNext uint64
	// Verified says that all that is stored has a root that the chain confirms.
	Verified bool
	// Problem is what is wrong and what to do; empty when nothing is.
	Problem string
	// At is when the chain was last compared with.
	At time.Time
}

// Lag is how many leaves the served list is behind the chain.
func (r Report) Lag() uint64 {
	if r.Published >= r.ChainNext {
		return 0
	}
	return r.ChainNext - r.Published
}
