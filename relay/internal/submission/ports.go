package submission

import (
	"context"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// PoolState reads the pool's accounts. Its refusals, pool_not_initialised and
// chain_unavailable, may be shown to clients.
type PoolState interface {
	// Tree returns the tree account, not older than maxAge if the chain answers.
	Tree(ctx context.Context, maxAge time.Duration) (onchain.Snapshot, error)
	// TreeWith returns a tree account that has the root in its root history: the account from
	// Tree, or that of another endpoint. When no account has the root, it returns the newest
	// one, read after the call.
	TreeWith(ctx context.Context, root [32]byte, maxAge time.Duration) (onchain.Snapshot, error)
	// Inspect reads nullifiers and recipient at one slot, not before minContextSlot.
	Inspect(ctx context.Context, in *shieldpool.PublicInputs, recipient solana.PublicKey, minContextSlot uint64) (onchain.Inspection, error)
	// Spent reports whether all endpoints that answer agree that a nullifier is spent, after
	// one endpoint reported it.
	Spent(ctx context.Context, nullifier [32]byte) (bool, error)
	// Tokens reads a mint and a token account at one slot.
	Tokens(ctx context.Context, mint, account solana.PublicKey) (onchain.Tokens, error)
	// FindCreation returns the transaction that created the nullifier's account; nil when no
	// endpoint's history has it.
	FindCreation(ctx context.Context, nullifier [32]byte) (*onchain.Creation, error)
}

// LeafIndex finds the indices of commitments in the tree.
type LeafIndex interface {
	// Sync reads the blocks that the chain has confirmed.
	Sync(ctx context.Context) error
	// Find returns the index of each commitment that the index has read.
	Find(ctx context.Context, commitments [][32]byte) (map[[32]byte]uint64, error)
}

// Observer counts events. Its arguments are from fixed sets; no content of a request
// reaches it.
type Observer interface {
	txmgr.Observer
	// Outcome counts the end of a submission: "completed", "finalized" or a refusal's code;
	// for a second leg "executed" or "refunded" in place of "completed".
	Outcome(kind shieldpool.Kind, outcome string)
}

// Notifications are the callbacks of a Listener.
type Notifications struct {
	// Done is called for every submission that any process finishes.
	Done func(uuid.UUID)
	// Due is called when a submission without an owner became due.
	Due func()
}

// Listener receives notifications of other processes, until ctx ends or the connection
// breaks. The receiver also reads the rows, because notifications can be missed.
type Listener interface {
	Listen(ctx context.Context, h Notifications) error
}
