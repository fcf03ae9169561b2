package chain

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

// History reads blocks and lists of transactions. After each Distrust, another endpoint is asked first. Safe for
// concurrent use.
type History struct {
	*Endpoints
	turn atomic.Uint32
}

// Distrust is called when what was read contradicts the chain. It returns false if there is no other endpoint.
func (h *History) Distrust() bool {
	h.turn.Add(1)
	return len(h.withRole(RoleArchive, RoleRead)) > 1
}

// Block reads the transactions that name the account, from the confirmed block of the slot; see
// rpc.Client.Block. If an endpoint does not have the block, the next one is asked. Block fails
// with onchain.ErrBlockPruned or onchain.ErrSlotSkipped only when no endpoint that could be
// asked has the block.
func (h *History) Block(ctx context.Context, slot uint64, account solana.PublicKey) (*onchain.Block, error) {
	q := historyQuery("getBlock", outbound.Background, func(ctx context.Context, source askedEndpoint) (*onchain.Block, error) {
		return source.Block(ctx, slot, account)
	})
	q.turn = int(h.turn.Load())
	return ask(ctx, h.Endpoints, q)
}

// SignaturesFor lists the transactions that name the address; see rpc.Client.SignaturesFor.
// Archives are asked first. When the list is empty, a second endpoint is asked too.
func (h *History) SignaturesFor(ctx context.Context, address solana.PublicKey, commitment onchain.Commitment, before, until solana.Signature, limit int) ([]onchain.SignatureInfo, error) {
	q := historyQuery("getSignaturesForAddress", outbound.Background, func(ctx context.Context, source askedEndpoint) ([]onchain.SignatureInfo, error) {
		return source.SignaturesFor(ctx, address, commitment, before, until, limit)
	})
	q.turn = int(h.turn.Load())
	return askAgain(ctx, h.Endpoints, q, secondOpinion[[]onchain.SignatureInfo]{
		doubtful: func(listed []onchain.SignatureInfo) bool { return len(listed) == 0 },
		again:    q.do,
		combine:  func(_, second []onchain.SignatureInfo) []onchain.SignatureInfo { return second },
	})
}

// turned returns the endpoints with the first so many moved to the end.
func turned(endpoints []*endpoint, turn int) []*endpoint {
	if len(endpoints) == 0 {
		return nil
	}
	first := turn % len(endpoints)
	return slices.Concat(endpoints[first:], endpoints[:first])
}
