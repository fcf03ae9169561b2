package chain

import (
	"context"
	"sync/atomic"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

// History reads blocks and lists of transactions. Safe for concurrent use.
type History struct {
	*Endpoints
	// answered and distrusted are 1 + the index of an endpoint: of the one that answered last, and of the one that
	// is asked after all others. 0 stands for none.
	answered, distrusted atomic.Int64
}

// Distrust is called when what was read contradicts the chain. One endpoint is from then on, until the next
// Distrust, asked after all others: the one that answered last or, if what was read after a Distrust is wrong
// again, the next one, because several may have answered. before is the number of calls since what was read was right.
// Distrust returns false if there are no others.
func (h *History) Distrust(before int) bool {
	last := h.answered.Load()
	if before > 0 {
		last = h.distrusted.Load()%int64(len(h.all)) + 1
	}
	h.distrusted.Store(last)
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
	return ask(ctx, h.Endpoints, trusting(h, q))
}

// SignaturesFor lists the transactions that name the address; see rpc.Client.SignaturesFor.
// Archives are asked first. When the list is empty, a second endpoint is asked too.
func (h *History) SignaturesFor(ctx context.Context, address solana.PublicKey, commitment onchain.Commitment, before, until solana.Signature, limit int) ([]onchain.SignatureInfo, error) {
	q := historyQuery("getSignaturesForAddress", outbound.Background, func(ctx context.Context, source askedEndpoint) ([]onchain.SignatureInfo, error) {
		return source.SignaturesFor(ctx, address, commitment, before, until, limit)
	})
	q = trusting(h, q)
	return askAgain(ctx, h.Endpoints, q, secondOpinion[[]onchain.SignatureInfo]{
		doubtful: func(listed []onchain.SignatureInfo) bool { return len(listed) == 0 },
		again:    q.do,
		combine:  func(_, second []onchain.SignatureInfo) []onchain.SignatureInfo { return second },
	})
}

// trusting returns the query with the distrusted endpoint as the last one.
func trusting[T any](h *History, q query[T]) query[T] {
	do := q.do
	q.last = int(h.distrusted.Load())
	q.do = func(ctx context.Context, source askedEndpoint) (T, error) {
		v, err := do(ctx, source)
		if err == nil {
			h.answered.Store(int64(source.index) + 1)
		}
		return v, err
	}
	return q
}
