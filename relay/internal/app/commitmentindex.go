package app

import (
	"context"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// indexPollInterval is how often the commitment index reads the tree when no submission triggers
// a read, and no endpoint reports changes.
const indexPollInterval = 500 * time.Millisecond

// commitmentHistory adapts the endpoints to the commitment index.
type commitmentHistory struct {
	*chain.History
	blocks chan<- *onchain.Block
}

// Block implements commitments.Chain. It also sends the block to blocks, unless that is full.
func (h commitmentHistory) Block(ctx context.Context, slot uint64, account solana.PublicKey) (*onchain.Block, error) {
	b, err := h.History.Block(ctx, slot, account)
	if err == nil {
		select {
		case h.blocks <- b:
		default:
		}
	}
	return b, err
}

// SignaturesFor implements commitments.Chain.
func (h commitmentHistory) SignaturesFor(ctx context.Context, address solana.PublicKey, before, until solana.Signature, limit int) ([]onchain.SignatureInfo, error) {
	return h.History.SignaturesFor(ctx, address, onchain.Confirmed, before, until, limit)
}

// FirstAvailableBlock implements commitments.Chain. It returns the answer of one endpoint;
// archives are asked first.
func (h commitmentHistory) FirstAvailableBlock(ctx context.Context) (uint64, error) {
	result, err := h.Search(ctx, []solana.Signature{})
	return result.FirstAvailable, err
}

func (a *App) newCommitmentIndex(p *shieldpool.Pool) (*commitments.Follower, error) {
	history := commitmentHistory{&chain.History{Endpoints: a.endpoints}, a.readBlocks}
	return commitments.New(commitments.Options{
		Store: a.store.Commitments(p.Address), Chain: history, Tree: a.poolReader, Pool: p, Log: a.log, Now: time.Now, Interval: indexPollInterval,
		Finalized: a.finalizedSlot, Subscribed: a.subscribed,
	})
}

// keepPayments stores what was paid in the blocks that the index reads, for the ledgers, those of other fleets of
// the pool included. The index does not wait for it.
func (a *App) keepPayments(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case b := <-a.readBlocks:
			var payments []*onchain.Payment
			for i := range b.Transactions {
				if p := b.Transactions[i].Payment; p != nil {
					payments = append(payments, p)
				}
			}
			if err := a.store.Ledger().KeepPayments(ctx, b.Slot, payments); err != nil {
				a.log.DebugContext(ctx, "payments are not kept; the ledger reads them from the chain", "slot", b.Slot, "error", err)
			}
		}
	}
}

// finalizedSlot returns the newest slot that is known to be final; 0 if none is.
func (a *App) finalizedSlot() uint64 {
	if r := a.finality.Report(); r.Current(time.Now()) {
		return r.Slot
	}
	return 0
}

// estimateFinalizedSlot returns which slot is final by now, if finality goes on; 0 if it does not, or nothing is known.
func (a *App) estimateFinalizedSlot() uint64 {
	r, now := a.finality.Report(), time.Now()
	if !r.Current(now) || r.Stalled {
		return 0
	}
	return r.Slot + uint64(now.Sub(r.AdvancedAt)/a.endpoints.SlotDuration()) //nolint:gosec // AdvancedAt is in the past
}

// readFinalizedSlot returns finalizedSlot, after a read if that is earlier than the slot.
func (a *App) readFinalizedSlot(ctx context.Context, slot uint64) uint64 {
	if a.finalizedSlot() < slot {
		a.finality.Read(ctx)
	}
	return a.finalizedSlot()
}

// subscribed reports whether an endpoint reports changes of the tree account now.
func (a *App) subscribed() bool {
	return slices.ContainsFunc(a.endpoints.Status(), func(s chain.EndpointStatus) bool { return s.Subscribed })
}

func (a *App) treeChanged(s onchain.Snapshot, selfCheck error) {
	a.metrics.TreeObserved(s.Tree.NextIndex, selfCheck)
	if !s.Doubtful { // a doubtful slot may be wrong, and the whole fleet would use it
		a.submissions.TreeSlots.Observe(s.Slot)
	}
	if selfCheck != nil {
		a.log.Error("tree account contradicts itself", "error", selfCheck)
	}
}

// treeNotification is called when an endpoint reports a change of the tree account at the slot.
func (a *App) treeNotification(slot uint64) {
	a.poolReader.NoticeChange(slot)
	a.commitmentIndex.Notice(slot)
	a.submissions.Manager.PollSoon()
}

// registerIndexGauges registers the gauges of the index.
func (a *App) registerIndexGauges() {
	ifRead := func(value func(commitments.Report) float64) func() (float64, bool) {
		return func() (float64, bool) {
			r := a.commitmentIndex.Status()
			return value(r), !r.At.IsZero()
		}
	}
	a.metrics.RegisterGaugeFunc(contract.MetricIndexLeaves, ifRead(func(r commitments.Report) float64 { return float64(r.Indexed) }))
	a.metrics.RegisterGaugeFunc(contract.MetricIndexServed, ifRead(func(r commitments.Report) float64 { return float64(r.Published) }))
	a.metrics.RegisterGaugeFunc(contract.MetricIndexUnknown, ifRead(func(r commitments.Report) float64 { return float64(r.UnknownVersions) }))
	a.metrics.RegisterGaugeFunc(contract.MetricIndexVerified, ifRead(func(r commitments.Report) float64 { return boolGauge(r.Verified) }))
}
