package submission

import (
	"context"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Chain is what the engine asks of the RPC. An error that wraps
// ledger.ErrUnavailable says nothing about what was asked.
type Chain interface {
	LatestBlockhash(ctx context.Context) (ledger.Blockhash, error)
	BlockHeight(ctx context.Context, c ledger.Commitment) (uint64, error)
	FirstAvailableBlock(ctx context.Context) (uint64, error)
	// Send forwards signed bytes; a *ledger.SendError when preflight refuses them.
	// It is called with a context that never ends, and gives up by itself within seconds.
	Send(ctx context.Context, raw []byte, preflight bool, minContextSlot uint64) error
	Simulate(ctx context.Context, raw []byte, replaceBlockhash bool) (ledger.Simulation, error)
	// Statuses answers in the order of at most 256 signatures, nil for one that
	// is not known; the slot is that of the answer.
	Statuses(ctx context.Context, sigs []solana.Signature, history bool) ([]*ledger.Status, uint64, error)
	PriorityFees(ctx context.Context, writable []solana.PublicKey) ([]uint64, error)
}

// PoolState reads the pool's accounts. Its refusals, pool_not_initialised and
// chain_unavailable, are fit for clients.
type PoolState interface {
	// Tree is the tree account, not older than maxAge if the chain answers.
	Tree(ctx context.Context, maxAge time.Duration) (ledger.Snapshot, error)
	Inspect(ctx context.Context, in *shieldpool.PublicInputs, recipient solana.PublicKey) (ledger.Inspection, error)
}

// FeePayer pays and signs.
type FeePayer interface {
	PublicKey() solana.PublicKey
	Sign(message []byte) (solana.Signature, error)
	// Ready refuses with fee_payer_empty when the payer cannot spend lamports.
	Ready(ctx context.Context, lamports uint64) error
}

// LeafIndex finds where commitments stand in the tree.
type LeafIndex interface {
	// Sync reads what the chain has confirmed.
	Sync(ctx context.Context) error
	Find(ctx context.Context, commitment [32]byte) (index uint64, ok bool, err error)
}

// Observer counts what happens. Arguments are from fixed sets; nothing of a
// request's content reaches it.
type Observer interface {
	// Stage times one of: verify, admission, queue, simulate, sign, confirm, finalize.
	Stage(stage string, took time.Duration)
	// Outcome counts a submission done: "completed", "finalized" or a refusal's code.
	Outcome(kind shieldpool.Kind, outcome string)
	// Attempt counts: signed, refused, rebroadcast, expired, reopened, held.
	Attempt(event string)
}
