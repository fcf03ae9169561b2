package txmgr_test

import (
	"context"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// modelNode is the model chain as a process reads it through its endpoints.
type modelNode struct{ *modelProcess }

// nodeBehind is the error of a node that has not reached the minimum slot of a call.
func nodeBehind(method string) error {
	return &onchain.Unavailable{Method: method, Kind: onchain.KindNodeBehind}
}

// LatestBlockhash implements txmgr.Chain.
func (n modelNode) LatestBlockhash(ctx context.Context) (onchain.Blockhash, error) {
	return ask(ctx, n.modelProcess, "blockhash", "", noChain, func(_ context.Context, _ modelFault, v modelView) (onchain.Blockhash, error) {
		b := v.confirmed
		return onchain.Blockhash{Hash: b.hash, Slot: b.slot, LastValidBlockHeight: b.height + n.w.chain.blockhashLife + n.extraHeight(b)}, nil
	})
}

// Send implements txmgr.Chain.
func (n modelNode) Send(ctx context.Context, raw []byte, how onchain.Sending, minContextSlot uint64) error {
	tx, err := parseModelTx(n.w.chain.pool, raw)
	if err != nil {
		n.w.violated("%s sends an invalid transaction: %v", n.name, err)
		return err
	}
	method := "send"
	if !how.First {
		method = "resend" // no process pauses or dies at this call: the driver waits for its end
	}
	_, err = ask(ctx, n.modelProcess, method, modelKey([]solana.Signature{tx.signature}), noChain, func(_ context.Context, f modelFault, v modelView) (struct{}, error) {
		if v.confirmed.slot < minContextSlot {
			return struct{}{}, nodeBehind("sendTransaction")
		}
		if how.First && how.SimulatedBy == "" {
			if refused := n.w.chain.preflight(v, tx, false); refused != nil {
				return struct{}{}, &onchain.SendError{Err: refused}
			}
		}
		n.w.checkSend(n.modelProcess, tx)
		if f != faultDropped {
			n.w.chain.forward(tx)
		}
		return struct{}{}, nil
	})
	return err
}

// LaneUsable implements txmgr.Chain.
func (modelNode) LaneUsable(string) bool { return true }

// SendLane implements txmgr.Chain. The lane forwards whatever it gets.
func (n modelNode) SendLane(ctx context.Context, lane string, raw []byte, _ bool) {
	tx, err := parseModelTx(n.w.chain.pool, raw)
	if err != nil || lane != "lane" || tx.tip == 0 {
		n.w.violated("%s sends lane %q an invalid transaction, or one without a tip: %v", n.name, lane, err)
		return
	}
	_, _ = ask(ctx, n.modelProcess, "resend", modelKey([]solana.Signature{tx.signature}), noChain, func(context.Context, modelFault, modelView) (struct{}, error) {
		n.w.checkSend(n.modelProcess, tx)
		n.w.chain.forward(tx)
		return struct{}{}, nil
	})
}

// preflight returns the error with which a node refuses a transaction; nil when it accepts it. If
// replaced is set, the transaction's blockhash is not checked.
func (c *modelChain) preflight(v modelView, tx *modelTx, replaced bool) *shieldpool.TransactionError {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := v.confirmed
	if !replaced {
		if c.landing(tx.signature, b) != nil {
			return &shieldpool.TransactionError{Kind: "AlreadyProcessed"}
		}
		if made := c.hashes[tx.blockhash]; made == nil || !made.isOn(b) || b.height+1 > made.height+c.blockhashLife {
			return &shieldpool.TransactionError{Kind: "BlockhashNotFound"}
		}
	}
	if b.state.lamports[tx.payer] < tx.fee {
		return &shieldpool.TransactionError{Kind: "InsufficientFundsForFee"}
	}
	return c.refuses(b.state, tx)
}

// Simulate implements txmgr.Chain.
func (n modelNode) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	tx, err := parseModelTx(n.w.chain.pool, raw)
	if err != nil {
		n.w.violated("%s simulates an invalid transaction: %v", n.name, err)
		return onchain.Simulation{}, err
	}
	return ask(ctx, n.modelProcess, "simulate", string(tx.call.Inputs.Nullifiers[0][:]), noChain, func(_ context.Context, _ modelFault, v modelView) (onchain.Simulation, error) {
		if v.confirmed.slot < minContextSlot {
			return onchain.Simulation{}, nodeBehind("simulateTransaction")
		}
		truth := onchain.Simulation{Err: n.w.chain.preflight(v, tx, replaceBlockhash), UnitsConsumed: tx.units(), Slot: v.confirmed.slot}
		if v.confirmed.slot%2 == 0 { // sometimes without preflight, sometimes with it
			truth.Endpoint = "node"
		}
		return n.simulationWithLies(string(tx.call.Inputs.Nullifiers[0][:]), truth), nil
	})
}

// status returns a signature's status at a node with that view; nil when it landed before the slot
// in from.
func (c *modelChain) status(v modelView, sig solana.Signature, from uint64) *onchain.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.landing(sig, v.tip)
	if l == nil || l.block.slot < from {
		return nil
	}
	s := &onchain.Status{Slot: l.block.slot, Err: l.err, Confirmation: onchain.Processed}
	switch {
	case l.block.height <= v.finalized.height:
		s.Confirmation = onchain.Finalized
	case l.block.height <= v.confirmed.height:
		s.Confirmation = onchain.Confirmed
	}
	return s
}

// statuses returns the statuses of the signatures, in their order.
func (c *modelChain) statuses(f modelFault, v modelView, sigs []solana.Signature, from uint64) []*onchain.Status {
	out := make([]*onchain.Status, len(sigs))
	if f == faultNull {
		return out
	}
	for i, s := range sigs {
		out[i] = c.status(v, s, from)
	}
	return out
}

// expired returns the slot up to which all blockhashes have expired, as reported by a node with that
// view; 0 for none.
func (c *modelChain) expired(v modelView) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.finalized.height <= c.blockhashLife {
		return 0
	}
	if b := v.finalized.ancestorAt(v.finalized.height - c.blockhashLife - 1); b != nil {
		return b.slot
	}
	return 0
}

// Statuses implements txmgr.Chain.
func (n modelNode) Statuses(ctx context.Context, sigs []solana.Signature) ([]*onchain.Status, uint64, error) {
	out, err := ask(ctx, n.modelProcess, "statuses", modelKey(sigs), noChain, func(_ context.Context, f modelFault, v modelView) ([]*onchain.Status, error) {
		truth := n.w.chain.statuses(f, v, sigs, v.tip.slot-min(v.tip.slot, n.w.chain.statusSlots))
		return n.withLies("statuses", v, sigs, truth, false), nil
	})
	return out, 0, err
}

// Search implements txmgr.Chain.
func (n modelNode) Search(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error) {
	return ask(ctx, n.modelProcess, "search", modelKey(sigs), noChain, func(_ context.Context, f modelFault, v modelView) (onchain.SearchResult, error) {
		from := n.w.chain.firstSearchable(v)
		if f == faultNull {
			n.w.deny(sigs)
		}
		return onchain.SearchResult{
			Statuses: n.withLies("search", v, sigs, n.w.chain.statuses(f, v, sigs, from), true), Slot: v.tip.slot,
			FinalizedSlot: v.finalized.slot, FinalizedHeight: v.finalized.height, FirstAvailable: from,
			ExpiredSlot: n.w.chain.expired(v),
		}, nil
	})
}

// PriorityFees implements txmgr.Chain.
func (n modelNode) PriorityFees(ctx context.Context, _ []solana.PublicKey) ([]uint64, error) {
	return ask(ctx, n.modelProcess, "fees", "", noChain, func(context.Context, modelFault, modelView) ([]uint64, error) { return []uint64{10, 20, 30}, nil })
}

// Tree implements submission.PoolState like the pool reader: the state of a node that is behind does
// not replace a newer one that was read before.
func (n modelNode) Tree(ctx context.Context, maxAge time.Duration) (onchain.Snapshot, error) {
	now := n.w.now()
	n.mu.Lock()
	last := n.tree
	n.mu.Unlock()
	if last.Tree != nil && maxAge > 0 && now.Sub(last.At) <= maxAge {
		return last, nil
	}
	return ask(ctx, n.modelProcess, "tree", "", noPool, func(_ context.Context, _ modelFault, v modelView) (onchain.Snapshot, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.tree.At = now
		if n.tree.Tree == nil || v.confirmed.slot >= n.tree.Slot {
			n.tree = onchain.Snapshot{Tree: n.w.chain.tree(v.confirmed.state), Slot: v.confirmed.slot, At: now, Checked: true}
		}
		return n.tree, nil
	})
}

// TreeWith implements submission.PoolState.
func (n modelNode) TreeWith(ctx context.Context, root [32]byte, maxAge time.Duration) (onchain.Snapshot, error) {
	s, err := n.Tree(ctx, maxAge)
	if err != nil || maxAge == 0 || s.Tree.LeavesUntilEviction(root) >= 0 {
		return s, err
	}
	return n.Tree(ctx, 0)
}

// Spent implements submission.PoolState.
func (n modelNode) Spent(context.Context, [32]byte) (bool, error) { return true, nil }

// Inspect implements submission.PoolState.
func (n modelNode) Inspect(ctx context.Context, in *shieldpool.PublicInputs, recipient solana.PublicKey, minContextSlot uint64) (onchain.Inspection, error) {
	return ask(ctx, n.modelProcess, "inspect", string(in.Nullifiers[0][:]), noPool, func(_ context.Context, _ modelFault, v modelView) (onchain.Inspection, error) {
		out := onchain.Inspection{Slot: v.confirmed.slot}
		if out.Slot < minContextSlot {
			return out, noPool("getMultipleAccounts")
		}
		for i := range in.Nullifiers {
			out.Spent[i] = in.HasNullifier(i) && v.confirmed.state.spent[in.Nullifiers[i]] != nil
		}
		if !recipient.IsZero() {
			out.RecipientExists, out.RecipientLamports = true, n.w.pool.Profile.RecipientMinimum
		}
		return out, nil
	})
}

// Tokens implements submission.PoolState. The model has no swaps.
func (n modelNode) Tokens(ctx context.Context, mint, _ solana.PublicKey) (onchain.Tokens, error) {
	return ask(ctx, n.modelProcess, "tokens", string(mint[:]), noPool, func(_ context.Context, _ modelFault, v modelView) (onchain.Tokens, error) {
		return onchain.Tokens{Slot: v.confirmed.slot}, nil
	})
}

// FindCreation implements submission.PoolState.
func (n modelNode) FindCreation(ctx context.Context, nullifier [32]byte) (*onchain.Creation, error) {
	return ask(ctx, n.modelProcess, "creation", string(nullifier[:]), noChain, func(_ context.Context, _ modelFault, v modelView) (*onchain.Creation, error) {
		l := v.confirmed.state.spent[nullifier]
		if l == nil || l.block.slot < n.w.chain.firstSearchable(v) {
			return nil, nil //nolint:nilnil // nil is "no history has it", as documented
		}
		out := &onchain.Creation{Signature: l.tx.signature, Slot: l.block.slot, Confirmation: onchain.Confirmed, FeePayer: l.tx.payer, Call: l.tx.call}
		if l.block.height <= v.finalized.height {
			out.Confirmation = onchain.Finalized
		}
		return out, nil
	})
}
