package txmgr_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
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
	// A batch of benchBatch submissions begins every benchPace slots. More would push roots out of the
	// root history while a busy network holds them back.
	benchBatch, benchPace = 4, 16
)

// landing is the fate of a client's transaction.
type landing struct {
	landed   bool // before its first blockhash expired
	slots    float64
	lamports uint64 // fee and tip, without those of attempts that another one overtook
}

// network is how hard it is to get a transaction into a block. Each send of each endpoint is lost with
// the same probability, a twentieth of the leaders is down, and on a busy network prices go in waves:
// the leaders of 48 windows take only what pays about 20 000 micro-lamports a unit, between half and four
// times that, and those of the next 48 take everything.
type network struct {
	loss float64
	busy bool
}

func (n network) String() string {
	if n.busy {
		return fmt.Sprintf("busy,loss=%.0f%%", 100*n.loss)
	}
	return fmt.Sprintf("loss=%.0f%%", 100*n.loss)
}

const (
	downLeaders             = 0.05
	busyWindows, allWindows = 48, 96
	busyPrice               = 20_000
	fixedPrice              = 10_000
)

// wavePrice is the lowest price that the leader of a window takes on a busy network.
func wavePrice(window uint64) uint64 {
	if window%allWindows >= busyWindows {
		return 0
	}
	r := rand.New(rand.NewPCG(1, window))
	return uint64(busyPrice * math.Exp2(3*r.Float64()-1))
}

// BenchmarkLanding compares ways of sending, side by side on chains of their own. It reports the share
// that landed before the first blockhash expired, the slots from the first send to the landing, and the
// price beyond rent, with the fees of attempts that another one overtook.
//
// "node" signs once, at no price or a fixed one, and sends to one endpoint, whose node sends on every
// 2 s, as relayers do that leave this to the node. "before" is how this relay once sent: to two
// endpoints every 2 s, at the median of the last 150 slots' prices, and no more until death is proven.
func BenchmarkLanding(b *testing.B) {
	plain := func(price func(*testing.B, *world) uint64) sendWay {
		return func(b *testing.B, w *world, _ *relay, clock *sendClock) func() []landing {
			return sendPlainly(b, w, clock, price)
		}
	}
	fixed := func(price uint64) func(*testing.B, *world) uint64 {
		return func(*testing.B, *world) uint64 { return price }
	}
	ways := []struct {
		name      string
		send      sendWay
		endpoints int
		lane      bool
	}{
		{"node, no price", plain(fixed(0)), 1, false},
		{"node, fixed price", plain(fixed(fixedPrice)), 1, false},
		{"before", plain(medianPrice), 2, false},
		{"one endpoint", relaySends, 1, false},
		{"two endpoints", relaySends, 2, false},
		{"two and a lane", relaySends, 2, true},
	}
	for _, n := range []network{{0, false}, {0.1, false}, {0.3, false}, {0.1, true}} {
		b.Run(n.String(), func(b *testing.B) {
			if b.N == 1 { // the trial run before the one whose N is asked for
				return
			}
			rows := make([]string, len(ways))
			var all sync.WaitGroup
			for i, way := range ways {
				w, r, clock := lossyWorld(b, benchSlot, way.endpoints, way.lane, n)
				all.Go(func() {
					landings := batches(b.N, func() func() []landing { return way.send(b, w, r, clock) })
					rows[i] = fmt.Sprintf("%-18s %s", way.name, figuresOf(landings, w.overtakenFees(b)))
				})
			}
			all.Wait()
			b.Log("\n" + strings.Join(rows, "\n"))
		})
	}
}

// sendWay makes a batch of transactions, and returns a function that waits for their fates.
type sendWay func(*testing.B, *world, *relay, *sendClock) (wait func() []landing)

// batches starts n batches at a steady pace, whatever becomes of the earlier ones.
func batches(n int, start func() func() []landing) (out []landing) {
	var mu sync.Mutex
	var waits sync.WaitGroup
	pace := time.NewTicker(benchPace * benchSlot)
	defer pace.Stop()
	for range n {
		wait := start()
		waits.Go(func() {
			landings := wait()
			mu.Lock()
			defer mu.Unlock()
			out = append(out, landings...)
		})
		<-pace.C
	}
	waits.Wait()
	return out
}

// sendClock notes the slot of each transaction's first send.
type sendClock struct {
	txmgr.Chain
	node  *rpc.Client
	slots *sync.Map // by signature
}

func (c *sendClock) Send(ctx context.Context, raw []byte, how onchain.Sending, minContextSlot uint64) error {
	if tx, err := solana.TransactionFromBytes(raw); how.First && err == nil {
		if slot, err := c.node.Slot(ctx, onchain.Processed); err == nil {
			c.slots.LoadOrStore(tx.Signatures[0], slot)
		}
	}
	return c.Chain.Send(ctx, raw, how, minContextSlot)
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

// lossyWorld is a world with a relay on the network, and with a lane if lane is true.
func lossyWorld(b *testing.B, slot time.Duration, endpoints int, lane bool, n network) (*world, *relay, *sendClock) {
	b.Helper()
	var from atomic.Uint64 // the first window after the world has been made
	from.Store(math.MaxUint64)
	w := newWorldOf(b, slot, func(o *localnet.Options) {
		o.Leaders = &bank.Leaders{
			Down: func(window uint64) bool {
				return window >= from.Load() && rand.New(rand.NewPCG(2, window)).Float64() < downLeaders
			},
			Price: func(window uint64) uint64 {
				if !n.busy || window < from.Load() {
					return 0
				}
				return wavePrice(window - from.Load())
			},
		}
	})
	w.deposit(1000 * sol)
	must(b, w.chain.Fund(w.payer.PublicKey(), 100*sol))
	all := w.listen([]string{"lane", "first", "second"}[:1+endpoints]...)
	all[0].Roles = []chain.Role{chain.RoleLane}
	for _, e := range all {
		if n.loss > 0 {
			w.faults(e.Name, fault.Rule{Method: "sendTransaction", Drop: true, Probability: n.loss})
		}
	}
	e := w.endpoints(all...)
	go e.Run(b.Context())
	node, err := rpc.New(rpc.Options{URL: all[1].URL, HTTP: rpc.NewHTTPClient(), Now: time.Now})
	must(b, err)
	clock := &sendClock{Chain: e, node: node, slots: new(sync.Map)}
	r := w.assemble(parts{state: w.newState(e), chain: func(txmgr.Chain) txmgr.Chain { return clock }, timing: txmgr.Timing{
		Lease: lease, Poll: 2 * slot, Sweep: 5 * slot, Backoff: slot, BackoffCap: 5 * slot, Hold: 5 * slot,
	}, price: txmgr.PriceRule{Cap: 1_000_000, Percentile: 40}, slot: func() time.Duration { return slot }, maxEarlyFees: 50_000})
	if lane {
		tip := w.newKey().PublicKey()
		must(b, w.chain.Fund(tip, sol))
		r.Lanes = []txmgr.Lane{{Name: "lane", Accounts: []solana.PublicKey{tip}, MinTip: 1000, MaxTip: 10_000}}
	}
	w.run(r)
	now, err := w.rpc.Slot(b.Context(), onchain.Processed)
	must(b, err)
	from.Store(now/4 + 1)
	return w, r, clock
}

// relaySends submits withdrawals to the relay.
func relaySends(b *testing.B, w *world, r *relay, clock *sendClock) func() []landing {
	b.Helper()
	ids := make([]uuid.UUID, benchBatch)
	for i := range ids {
		req, _ := w.withdrawal(sol / 100)
		ids[i] = w.submit(r, req).ID
	}
	return func() []landing {
		out := make([]landing, benchBatch)
		for i, id := range ids {
			out[i] = w.fate(b, clock, id)
		}
		return out
	}
}

// fate waits until a submission has landed.
func (w *world) fate(b *testing.B, clock *sendClock, id uuid.UUID) (l landing) {
	b.Helper()
	s := w.done(id)
	rows, err := w.store.Pool.Query(b.Context(), `SELECT signature, fee + tip FROM attempts WHERE submission_id = $1 ORDER BY created_at`, id)
	must(b, err)
	var first, signature []byte
	var lamports uint64
	_, err = pgx.ForEachRow(rows, []any{&signature, &lamports}, func() error {
		if first == nil {
			first = slices.Clone(signature)
		}
		if solana.SignatureFromBytes(signature) == *s.Signature {
			l.lamports = lamports
		}
		return nil
	})
	must(b, err)
	l.slots = clock.since(b, solana.SignatureFromBytes(first), s.Slot)
	l.landed = l.slots <= onchain.BlockhashBlocks
	return l
}

// sendPlainly signs each withdrawal once, and sends it every nodeRetry until it has landed or expired.
func sendPlainly(b *testing.B, w *world, clock *sendClock, price func(*testing.B, *world) uint64) func() []landing {
	b.Helper()
	compute := shieldpool.Compute{Limit: 200_000, Price: price(b, w)}
	calls := make([]*shieldpool.Call, benchBatch)
	for i := range calls {
		req, to := w.withdrawal(sol / 100)
		in, err := shieldpool.ParsePublicInputs(req.PublicInputs)
		must(b, err)
		calls[i] = &shieldpool.Call{Proof: req.Proof, Inputs: in, Notes: req.Notes, Destination: shieldpool.Destination{Recipient: to}}
	}
	return func() []landing {
		out := make([]landing, benchBatch)
		var sends sync.WaitGroup
		for i, call := range calls {
			sends.Go(func() { out[i] = w.sendOnce(b, clock, w.payer, call, compute) })
		}
		sends.Wait()
		return out
	}
}

// medianPrice is the median of the recent slots' lowest prices.
func medianPrice(b *testing.B, w *world) uint64 {
	b.Helper()
	fees, err := w.rpc.PriorityFees(b.Context(), []solana.PublicKey{w.pool.MerkleTree})
	must(b, err)
	return txmgr.PriceRule{Cap: 1_000_000, Percentile: 50}.Of(fees)
}

// sendOnce signs a call, and sends it every nodeRetry until it has landed or expired.
func (w *world) sendOnce(b *testing.B, node *sendClock, wallet *feepayer.Key, call *shieldpool.Call, compute shieldpool.Compute) landing {
	b.Helper()
	ctx := b.Context()
	a, err := txmgr.Sign(ctx, node, func(payer solana.PublicKey, c shieldpool.Compute, hash solana.Hash) (*solana.Transaction, error) {
		return w.pool.Transaction(payer, call, c, hash, nil)
	}, wallet, compute)
	must(w.t, err)
	next, first := time.Now(), true
	for ctx.Err() == nil {
		if !time.Now().Before(next) {
			_ = node.Send(ctx, a.Raw, onchain.Sending{First: first}, 0) // what counts is what lands
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
	w, r, clock := lossyWorld(b, 200*time.Millisecond, 2, true, network{loss: 1})
	var fate []landing
	for b.Loop() {
		signed := r.count("signed")
		wait := relaySends(b, w, r, clock)
		w.eventually("the first transactions have been followed by others", func() bool { return r.count("signed") >= signed+benchBatch+1 })
		for _, name := range []string{"lane", "first", "second"} {
			w.faults(name)
		}
		fate = append(fate, wait()...)
		for _, name := range []string{"lane", "first", "second"} {
			w.faults(name, fault.Rule{Method: "sendTransaction", Drop: true})
		}
	}
	b.Log("\n" + figuresOf(fate, w.overtakenFees(b)))
	slowest := slices.MaxFunc(fate, func(x, y landing) int { return cmp.Compare(x.slots, y.slots) })
	b.ReportMetric(slowest.slots/onchain.BlockhashBlocks, "max-lives")
}

// overtakenFees is the sum of the fees of the relay's attempts that another one overtook, and that
// landed nevertheless: they failed.
func (w *world) overtakenFees(b *testing.B) (sum uint64) {
	b.Helper()
	rows, err := w.store.Pool.Query(b.Context(), `SELECT a.signature, a.fee FROM attempts a JOIN submissions s ON s.id = a.submission_id WHERE a.signature <> s.signature`)
	must(b, err)
	var signature []byte
	var fee uint64
	_, err = pgx.ForEachRow(rows, []any{&signature, &fee}, func() error {
		found, err := w.rpc.Search(b.Context(), []solana.Signature{solana.SignatureFromBytes(signature)})
		if err == nil && found.Statuses[0] != nil {
			sum += fee
		}
		return err
	})
	must(b, err)
	return sum
}

// figuresOf sums transactions up. One that never landed took as long as a blockhash lives.
func figuresOf(all []landing, overtaken uint64) string {
	slots := make([]float64, len(all))
	lamports, landed := overtaken, 0
	for i, l := range all {
		if slots[i] = l.slots; l.lamports == 0 {
			slots[i] = onchain.BlockhashBlocks
		}
		if l.landed {
			landed++
		}
		lamports += l.lamports
	}
	slices.Sort(slots)
	n := len(slots)
	return fmt.Sprintf("%4d of %4d landed in time (%.2f %%), slots p50 %3.0f, p99 %3.0f, %6.0f lamports a landing",
		landed, n, 100*float64(landed)/float64(n), slots[n/2], slots[min(n-1, n*99/100)], float64(lamports)/float64(max(landed, 1)))
}
