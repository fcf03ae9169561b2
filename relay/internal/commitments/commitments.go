// Package commitments keeps the pool's leaves in the tree's order, so that a client can rebuild
// the Merkle tree. It reads them from the chain's blocks. It recomputes their root, and publishes
// leaves only if the chain's tree account confirms that root. Relays without this check have
// served lists with a wrong root, because of a wrong order inside a slot, a short history or an
// abandoned fork.
package commitments

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// ErrMoved reports that another pod has changed the index since its position was read.
var ErrMoved = errors.New("another relay has moved the commitment index")

// Position is the state of the commitment index, which is the stored list of the pool's leaves.
// Leaves is the number of stored leaves. Published is the number of leaves that are served,
// because the chain has confirmed them. Every slot up to Slot was read completely.
type Position struct {
	Leaves, Published, Slot uint64
	// Generation changes whenever stored leaves are removed. Without it, a pod would not notice
	// that leaves which it has read were replaced by the same number of others.
	Generation uint64
}

// IndexedCommitment is a leaf read from the chain, and the slot in which it was appended.
type IndexedCommitment struct {
	Commitment [32]byte
	Slot       uint64
}

// Store keeps the leaves. Each write names the position that it starts from. If the stored
// position differs, the write returns ErrMoved and changes nothing.
type Store interface {
	// Lock waits until no other pod reads blocks for this index, so that most blocks are read once for
	// all pods. After half a second, or when the database fails, it returns all the same: nothing
	// depends on the lock but the number of reads.
	Lock(ctx context.Context) (unlock func())
	Position(ctx context.Context) (Position, error)
	// Append adds leaves after the position. Every slot up to slot counts as read completely.
	Append(ctx context.Context, from Position, leaves []IndexedCommitment, slot uint64) error
	// Publish sets the number of leaves that are served. It may be lower than before.
	Publish(ctx context.Context, from Position, published uint64) error
	// Rewind removes the leaves of all slots after slot and starts a new generation.
	Rewind(ctx context.Context, from Position, slot uint64) error
	// Read returns at most limit stored leaves, starting at the leaf with the index from. It
	// fails with ErrMoved when the generation has changed, or no leaf has that index.
	Read(ctx context.Context, generation, from uint64, limit int) ([]IndexedCommitment, error)
	// Find returns the highest leaf index of each commitment that is stored. It finds nothing
	// until some leaves are published: before that, the first stored leaf need not be the
	// tree's first, so indexes may be wrong. After that, it finds unpublished leaves too.
	Find(ctx context.Context, commitments [][32]byte) (map[[32]byte]uint64, error)
	// SentLeaves returns the leaves of each submission of the fleet that was sent and is not known to have
	// landed or failed, most urgent first.
	SentLeaves(ctx context.Context) ([][][32]byte, error)

	// Checkpoint returns the newest checkpoint of the generation that has at most so many
	// leaves; the one of no leaves when there is none.
	Checkpoint(ctx context.Context, generation, most uint64) (Checkpoint, error)
	// AddCheckpoint adds a checkpoint, unless the generation has changed. Rewind removes those
	// that have a leaf which it removes.
	AddCheckpoint(ctx context.Context, generation uint64, c Checkpoint) error
	DropCheckpoints(ctx context.Context) error
}

// Chain reads confirmed history.
type Chain interface {
	// SignaturesFor lists an address's transactions that are newer than the signature until and
	// older than the signature before, newest first. A zero signature sets no bound.
	SignaturesFor(ctx context.Context, address solana.PublicKey, before, until solana.Signature, limit int) ([]onchain.SignatureInfo, error)
	// Block reads the transactions of a block that name the account. It fails with
	// onchain.ErrSlotSkipped or onchain.ErrBlockPruned for a block that it does not have.
	Block(ctx context.Context, slot uint64, account solana.PublicKey) (*onchain.Block, error)
	FirstAvailableBlock(ctx context.Context) (uint64, error)
	// Distrust is called when what was read contradicts the chain's tree, with the number of such calls since what
	// was read was right. Another endpoint is then asked first; false if there is none.
	Distrust(before int) bool
}

// Tree reads the pool's tree account, which stored leaves are compared with.
type Tree interface {
	// AgreedTree returns a known tree of minSlot or later that was read at most maxAge ago, or else reads it. What
	// it reads may still be of an earlier slot.
	AgreedTree(ctx context.Context, minSlot uint64, maxAge time.Duration) (onchain.Snapshot, error)
	// ProcessedTree has what one endpoint has processed, which may be undone.
	ProcessedTree(ctx context.Context) (onchain.Snapshot, error)
}

// Options configure a Follower. All fields but the last are needed.
type Options struct {
	Store Store
	Chain Chain
	Tree  Tree
	Pool  *shieldpool.Pool
	Log   *slog.Logger
	Now   func() time.Time
	// Interval is the time between two reads of the tree; see Run.
	Interval time.Duration
	// Subscribed reports whether an endpoint reports changes of the tree now. The caller passes these on
	// to Notice.
	Subscribed func() bool
	// Finalized returns the newest finalized slot; 0 while it is not known.
	Finalized func() uint64
	// CheckpointEvery is the number of leaves between two checkpoints; 0 means 4096.
	CheckpointEvery uint64
}

// Report is the state of the index.
type Report struct {
	// Indexed is the number of leaves that are stored, Published the number of leaves that are
	// served, and ChainNext the number of leaves on the chain.
	Indexed, Published, ChainNext uint64
	// UnknownVersions counts transactions of versions that the relay cannot decode, in the
	// blocks that were read.
	UnknownVersions uint64
	// Verified reports that the chain confirms the root of all stored leaves.
	Verified bool
	// Problem describes why the newest pass failed, and the remedy; empty when it succeeded.
	Problem string
	// At is the time at which the index was last compared with the chain.
	At time.Time
}

// Lag returns the number of leaves that the chain has and the served list lacks.
func (r Report) Lag() uint64 {
	if r.Published >= r.ChainNext {
		return 0
	}
	return r.ChainNext - r.Published
}
