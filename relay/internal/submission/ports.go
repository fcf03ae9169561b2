package submission

import (
	"context"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Chain is what the engine asks of the RPC. An error that wraps
// ledger.ErrUnavailable says nothing about what was asked.
type Chain interface {
	LatestBlockhash(ctx context.Context) (ledger.Blockhash, error)
	// Send gives signed bytes to the endpoints; nil when one took them, and a
	// *ledger.SendError when all that were asked refused. A first send is simulated
	// by the endpoint and goes before the repetitions in an endpoint's budget. Once
	// begun it is not cut off by ctx, and gives up by itself within seconds.
	Send(ctx context.Context, raw []byte, first bool, minContextSlot uint64) error
	// Simulate runs a transaction on a node that has reached minContextSlot.
	Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (ledger.Simulation, error)
	// Statuses answers from the recent past in the order of at most 256
	// signatures, nil for one that is not known; the slot is that of the answer.
	Statuses(ctx context.Context, sigs []solana.Signature) ([]*ledger.Status, uint64, error)
	// Search looks at most 256 signatures up in all history of one endpoint.
	Search(ctx context.Context, sigs []solana.Signature) (ledger.Look, error)
	PriorityFees(ctx context.Context, writable []solana.PublicKey) ([]uint64, error)
}

// PoolState reads the pool's accounts. Its refusals, pool_not_initialised and
// chain_unavailable, are fit for clients.
type PoolState interface {
	// Tree is the tree account, not older than maxAge if the chain answers.
	Tree(ctx context.Context, maxAge time.Duration) (ledger.Snapshot, error)
	// TreeWith is the tree account that has the root in its ring: the one that Tree
	// gives, or any endpoint's. When all lack it, it is the newest one, read after the call.
	TreeWith(ctx context.Context, root [32]byte, maxAge time.Duration) (ledger.Snapshot, error)
	// Inspect reads nullifiers and recipient at one slot, not before minContextSlot.
	Inspect(ctx context.Context, in *shieldpool.PublicInputs, recipient solana.PublicKey, minContextSlot uint64) (ledger.Inspection, error)
	// Spent reports whether a nullifier of which one endpoint says so is spent by all
	// that answer.
	Spent(ctx context.Context, nullifier [32]byte) (bool, error)
	// Tokens reads a mint and a token account at one slot.
	Tokens(ctx context.Context, mint, account solana.PublicKey) (ledger.Tokens, error)
	// Creation is the transaction that made the nullifier's account; nil when no
	// endpoint's history has it.
	Creation(ctx context.Context, nullifier [32]byte) (*ledger.Creation, error)
}

// FeePayers pay and sign. Their refusals, fee_payer_empty and
// chain_unavailable, are fit for clients.
type FeePayers interface {
	// Ready refuses when no payer could spend lamports.
	Ready(ctx context.Context, lamports uint64) error
	// Pick chooses the payer of a transaction that costs lamports, and reserves
	// them until Release. What ends work that was begun may be paid from the balance
	// that the payers keep for it.
	Pick(ctx context.Context, lamports uint64, begun bool) (Payer, error)
	// Release ends a reservation: the transaction landed or died. Cancel ends one of
	// which nothing was signed.
	Release(payer solana.PublicKey, lamports uint64)
	Cancel(payer solana.PublicKey, lamports uint64)
	// MarkRefused tells that the chain did not take the payer for its want of
	// lamports; MarkWorking that a transaction of it landed.
	MarkRefused(payer solana.PublicKey, cause error)
	MarkWorking(payer solana.PublicKey)
	// Keys are all payers; Owns reports whether a key is one of them.
	Keys() []solana.PublicKey
	Owns(key solana.PublicKey) bool
}

// Payer is one fee payer's key.
type Payer interface {
	PublicKey() solana.PublicKey
	// Sign signs a serialised message.
	Sign(message []byte) (solana.Signature, error)
}

// Spending caps what the relay pays. Its refusal is spend_cap_reached.
type Spending interface {
	// Ready asks for work that is not paid yet; Allow for an attempt, and counts it.
	Ready(ctx context.Context, transfer bool, lamports uint64) error
	Allow(ctx context.Context, transfer bool, lamports uint64) error
}

// LeafIndex finds where commitments stand in the tree.
type LeafIndex interface {
	// Sync reads what the chain has confirmed.
	Sync(ctx context.Context) error
	// Find gives the index of each commitment that has been read.
	Find(ctx context.Context, commitments [][32]byte) (map[[32]byte]uint64, error)
}

// Observer counts what happens. Arguments are from fixed sets; nothing of a
// request's content reaches it.
type Observer interface {
	// Stage times one of: verify, admission, queue, simulate, sign, first_send,
	// confirm, settle (of a swap's second leg, from the first one's landing), finalize.
	Stage(stage string, took time.Duration)
	// Outcome counts a submission done: "completed", "finalized" or a refusal's code,
	// and of a settlement "executed" or "refunded" in place of "completed".
	Outcome(kind shieldpool.Kind, outcome string)
	// Attempt counts: signed, refused, rebroadcast, expired, failed_on_chain,
	// adopted, reopened, held, panic.
	Attempt(event string)
	// Lease counts leases: claimed, lost, reaped, stray, lapsed, handed_over.
	Lease(event string, n int)
	// Poll counts a look at signatures, and whether a notification brought it forward.
	Poll(signatures int, nudged bool)
}

// Notifications is what a Listener passes on.
type Notifications struct {
	// Done is told of every submission that any process finishes.
	Done func(uuid.UUID)
	// Due is told when something became due that nobody holds.
	Due func()
}

// Listener hears of what other processes do, until ctx ends or the connection
// breaks. What it misses is found by looking at the rows.
type Listener interface {
	Listen(ctx context.Context, h Notifications) error
}
