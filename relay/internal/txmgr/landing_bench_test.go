package txmgr_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// benchSlot is a fourth of mainnet's slot, so that the machine's own work is a small part of it.
	benchSlot = 50 * time.Millisecond
	// nodeRetry is how often a node of Agave sends on a transaction that it has accepted, unless it
	// is told not to: every 2 s, which are 10 slots.
	nodeRetry = 10 * benchSlot
	// benchBatch submissions are in flight at once.
	benchBatch = 8
)

// landing is the fate of a client's transaction.
type landing struct {
	landed   bool // before its first blockhash expired
	slots    float64
	lamports uint64 // fee and tip
}

// BenchmarkLanding compares ways of sending on a network that loses transactions: each send of
// each endpoint is lost with the same probability. It reports the share that landed with the first
// blockhash, the slots from the first send to the landing, and the price beyond rent.
// "node retries" sends once to one endpoint, whose node sends on every 2 s, as relayers do that
// leave this to the node.
func BenchmarkLanding(b *testing.B) {
	for _, loss := range []float64{0, 0.1, 0.3} {
		for _, way := range []struct {
			name      string
			send      func(*testing.B, *world, *relay, *sendClock) []landing
			endpoints int
			lane      bool
		}{
			{"node retries", nodeRetries, 1, false},
			{"relay, one endpoint", relaySends, 1, false},
			{"relay, two endpoints", relaySends, 2, false},
			{"relay, two endpoints and lane", relaySends, 2, true},
		} {
			b.Run(fmt.Sprintf("loss=%.0f%%/%s", 100*loss, way.name), func(b *testing.B) {
				w, r, clock := lossyWorld(b, benchSlot, way.endpoints, way.lane, loss)
				var all []landing
				for b.Loop() {
					all = append(all, way.send(b, w, r, clock)...)
				}
				report(b, all)
			})
		}
	}
}

// sendClock notes the slot of each transaction's first send.
type sendClock struct {
	txmgr.Chain
	node  *rpc.Client
	slots *sync.Map // by signature
}

func (c *sendClock) Send(ctx context.Context, raw []byte, first bool, minContextSlot uint64) error {
	if tx, err := solana.TransactionFromBytes(raw); first && err == nil {
		if slot, err := c.node.Slot(ctx, onchain.Processed); err == nil {
			c.slots.LoadOrStore(tx.Signatures[0], slot)
		}
	}
	return c.Chain.Send(ctx, raw, first, minContextSlot)
}

// since returns the slots from the first send of a transaction to its landing.
func (c *sendClock) since(b *testing.B, signature solana.Signature, landed uint64) float64 {
	b.Helper()
	sent, ok := c.slots.Load(signature)
	if !ok {
		b.Fatalf("the transaction %s landed without a send", signature)
	}
	return float64(landed - min(landed, sent.(uint64)))
}

// lossyWorld is a world with a relay whose endpoints lose sends, and with a lane if lane is true.
func lossyWorld(b *testing.B, slot time.Duration, endpoints int, lane bool, loss float64) (*world, *relay, *sendClock) {
	b.Helper()
	w := newWorldOf(b, slot)
	w.deposit(1000 * sol)
	all := w.listen([]string{"lane", "first", "second"}[:1+endpoints]...)
	all[0].Roles = []chain.Role{chain.RoleLane}
	for _, e := range all {
		if loss > 0 {
			w.faults(e.Name, fault.Rule{Method: "sendTransaction", Drop: true, Probability: loss})
		}
	}
	e := w.endpoints(all...)
	go e.Run(b.Context())
	node, err := rpc.New(rpc.Options{URL: all[1].URL, HTTP: rpc.NewHTTPClient(), Now: time.Now})
	must(b, err)
	clock := &sendClock{Chain: e, node: node, slots: new(sync.Map)}
	r := w.assemble(parts{state: w.newState(e), chain: func(txmgr.Chain) txmgr.Chain { return clock }, timing: txmgr.Timing{
		Lease: lease, Poll: 2 * slot, Sweep: 5 * slot, Backoff: slot, BackoffCap: 5 * slot, Hold: 5 * slot,
	}})
	r.SlotDuration = func() time.Duration { return slot }
	if lane {
		tip := w.newKey().PublicKey()
		must(b, w.chain.Fund(tip, sol))
		r.Lanes = []txmgr.Lane{{Name: "lane", Accounts: []solana.PublicKey{tip}, MinTip: 1000, MaxTip: 10_000, Always: true}}
	}
	w.run(r)
	return w, r, clock
}

// relaySends submits withdrawals to the relay, and waits until they have landed.
func relaySends(b *testing.B, w *world, r *relay, clock *sendClock) []landing {
	b.Helper()
	ids := make([]uuid.UUID, benchBatch)
	for i := range ids {
		req, _ := w.withdrawal(sol / 100)
		ids[i] = w.submit(r, req).ID
	}
	out := make([]landing, benchBatch)
	for i, id := range ids {
		s := w.done(id)
		rows, err := w.store.Pool.Query(b.Context(), `SELECT signature, fee + tip FROM attempts WHERE submission_id = $1 ORDER BY created_at`, id)
		must(b, err)
		attempts, first := 0, solana.Signature{}
		var signature []byte
		var lamports uint64
		_, err = pgx.ForEachRow(rows, []any{&signature, &lamports}, func() error {
			if attempts++; attempts == 1 {
				first = solana.SignatureFromBytes(signature)
			}
			if solana.SignatureFromBytes(signature) == *s.Signature {
				out[i].lamports = lamports
			}
			return nil
		})
		must(b, err)
		out[i].landed, out[i].slots = attempts == 1, clock.since(b, first, s.Slot)
	}
	return out
}

// nodeRetries sends each withdrawal through one node that sends it on.
func nodeRetries(b *testing.B, w *world, _ *relay, clock *sendClock) []landing {
	b.Helper()
	wallet := w.newKey()
	must(b, w.chain.Fund(wallet.PublicKey(), sol))
	w.eventually("the wallet has lamports", func() bool { return w.balance(wallet.PublicKey()) > 0 })
	out := make([]landing, benchBatch)
	var wg sync.WaitGroup
	for i := range out {
		req, to := w.withdrawal(sol / 100)
		in, err := shieldpool.ParsePublicInputs(req.PublicInputs)
		must(b, err)
		call := &shieldpool.Call{Proof: req.Proof, Inputs: in, Notes: req.Notes, Destination: shieldpool.Destination{Recipient: to}}
		wg.Go(func() { out[i] = w.sendByNode(b, clock, wallet, call) })
	}
	wg.Wait()
	return out
}

// sendByNode signs a call, and sends it every nodeRetry until it has landed or expired.
func (w *world) sendByNode(b *testing.B, node *sendClock, wallet *feepayer.Key, call *shieldpool.Call) landing {
	b.Helper()
	ctx := b.Context()
	compute := shieldpool.Compute{Limit: 400_000}
	a, err := txmgr.Sign(ctx, node, func(payer solana.PublicKey, c shieldpool.Compute, hash solana.Hash) (*solana.Transaction, error) {
		return w.pool.Transaction(payer, call, c, hash, nil)
	}, wallet, compute)
	must(w.t, err)
	next, first := time.Now(), true
	for ctx.Err() == nil {
		if !time.Now().Before(next) {
			_ = node.Send(ctx, a.Raw, first, 0) // what counts is what lands
			next, first = next.Add(nodeRetry), false
		}
		st, slot, err := w.rpc.Statuses(ctx, []solana.Signature{a.Signature})
		must(w.t, err)
		if st[0] != nil && st[0].Confirmation.AtLeast(onchain.Processed) {
			return landing{landed: st[0].Err == nil, slots: node.since(b, a.Signature, st[0].Slot), lamports: a.Fee}
		}
		if slot > a.BlockhashSlot+200 {
			return landing{}
		}
		time.Sleep(benchSlot)
	}
	return landing{}
}

// BenchmarkLostTransactions measures how long a submission takes to land when every send of its first
// transaction is lost: in slots from the first send, and in lives of a blockhash, at mainnet's slots.
func BenchmarkLostTransactions(b *testing.B) {
	w, r, clock := lossyWorld(b, 200*time.Millisecond, 2, true, 1)
	var all []landing
	for b.Loop() {
		var wg sync.WaitGroup
		signed := r.count("signed")
		wg.Go(func() { all = append(all, relaySends(b, w, r, clock)...) })
		w.eventually("the first transactions have expired", func() bool { return r.count("signed") >= signed+benchBatch+1 })
		for _, name := range []string{"lane", "first", "second"} {
			w.faults(name)
		}
		wg.Wait()
		for _, name := range []string{"lane", "first", "second"} {
			w.faults(name, fault.Rule{Method: "sendTransaction", Drop: true})
		}
	}
	report(b, all)
	slots := make([]float64, len(all))
	for i, l := range all {
		slots[i] = l.slots
	}
	b.ReportMetric(slices.Max(slots)/onchain.BlockhashBlocks, "max-lives")
}

// report reports the figures of all transactions.
func report(b *testing.B, all []landing) {
	b.Helper()
	var slots []float64
	var lamports uint64
	landed := 0
	for _, l := range all {
		if l.landed {
			landed++
		}
		if l.lamports > 0 { // otherwise it never landed
			slots, lamports = append(slots, l.slots), lamports+l.lamports
		}
	}
	slices.Sort(slots)
	b.ReportMetric(100*float64(landed)/float64(len(all)), "%landed")
	if n := len(slots); n > 0 {
		b.ReportMetric(slots[n/2], "p50-slots")
		b.ReportMetric(slots[min(n-1, n*99/100)], "p99-slots")
		b.ReportMetric(float64(lamports)/float64(n), "lamports/landing")
	}
	b.ReportMetric(float64(len(all)), "transactions")
}
