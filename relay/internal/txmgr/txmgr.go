// Package txmgr brings each job to exactly one outcome on the chain: it prepares, simulates,
// signs, records, sends, tracks and resolves the job's transactions. Each of these actions has
// its own file; launch.go calls the first five in this order. A process works on a job under a
// lease, so that another process can finish the job if the first one dies. Handlers decide what the
// transactions do.
//
// The rules of the package: an attempt is committed before its first send; the same bytes are sent
// until they have landed or can never land; while an attempt may still land, the job does not fail,
// and no other transaction is signed for the job, except an early attempt, of which the chain takes
// at most one (earlyattempt.go).
package txmgr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Options configure a Manager. All fields but BaseFee, Lanes and MaxEarlyFees are needed.
type Options struct {
	Store    Store
	Chain    Chain
	Payers   FeePayers
	Spending Spending
	Outcomes Outcomes
	// Class classifies the failure of a transaction with that purpose and format. The format
	// determines which instruction the index in an error means.
	Class func(p Purpose, f shieldpool.Format, err *shieldpool.TransactionError) shieldpool.Class
	// Readable returns nil when the chain state that the jobs need can be read. The refusal
	// pool_not_initialised pauses the queue until the pool is initialised.
	Readable func(ctx context.Context) error
	// Landed is called with a landing as soon as it is observed, before it is recorded.
	Landed func(*Job, Landing)
	// EstimateFinalized estimates the newest final slot; 0 if nothing is known. Landed jobs are polled once they may
	// be final. nil if nothing is ever known.
	EstimateFinalized func() uint64
	// SlotDuration returns how long a slot takes, which determines how long a blockhash lives.
	// Once an attempt is older than a blockhash lives, it may have expired, and is searched in
	// all history.
	SlotDuration func() time.Duration
	// Rent returns the network's rate of rent; 0 while it is unknown.
	Rent func() shieldpool.Rent
	// BaseFee returns the network's base fee; nil for the fee of one signature.
	BaseFee func() shieldpool.BaseFee
	// Writable are accounts that every transaction writes. The fees that others pay to write
	// these accounts determine the price of a compute unit.
	Writable []solana.PublicKey
	Observer Observer
	Log      *slog.Logger
	Now      func() time.Time
	// Worker identifies this process among the owners of leases.
	Worker uuid.UUID
	Timing Timing
	Price  PriceRule
	// Lanes are ways to the chain that cost a tip; none by default.
	Lanes []Lane
	// MaxEarlyFees is the most that the attempts of a job may cost in vain, in lamports, because some
	// were signed before the earlier ones were dead; 0 for no such attempts.
	MaxEarlyFees uint64
}

// Manager advances jobs to their outcome.
type Manager struct {
	Options
	// queues are served concurrently. The first is the main queue, whose loop also claims
	// landed jobs.
	queues   []*Queue
	compute  *computeLimits
	price    *priceCache
	results  laneResults
	tracker  *tracker
	recorder *recorder
	paused   queuePause
	// outage records since when no endpoint accepts transactions.
	outage sendOutage
	// leaseHealth records since when this process's leases have been valid.
	leaseHealth leaseHealth
	// rowsMayRemain is true if the last claim may have left due rows unclaimed, because the
	// capacity was used up.
	rowsMayRemain atomic.Bool
	// unsigned is what the last transaction that no available signer could pay needed, in lamports.
	unsigned atomic.Uint64
	// orphanSuspects are the leases that the last audit found only in the database. A lease that
	// the next audit finds there again is orphaned.
	orphanSuspects map[Lease]bool
	// othersNeeded triggers a notification of other processes.
	othersNeeded chan struct{}
	// stopping ends when nothing new may be claimed. Running steps then have half the duration
	// of a lease to finish.
	stopping context.Context
	stop     context.CancelFunc
	steps    sync.WaitGroup
}

// check returns an error for an option that is missing or out of bounds.
func (o *Options) check() error {
	if o.Store == nil || o.Chain == nil || o.Payers == nil || o.Spending == nil || o.Outcomes == nil || o.Class == nil || o.Readable == nil || o.Landed == nil || o.Rent == nil || o.SlotDuration == nil ||
		o.Observer == nil || o.Log == nil || o.Now == nil || o.Worker == uuid.Nil {
		return errors.New("the transaction manager needs all of its options")
	}
	return o.Timing.check()
}

func (t Timing) check() error {
	if t.Lease <= 0 || t.Poll <= 0 || t.Sweep <= 0 || t.Backoff <= 0 || t.BackoffCap < t.Backoff || t.Hold <= 0 {
		return errors.New("the transaction manager needs intervals above zero, and a BackoffCap of at least Backoff")
	}
	return nil
}

// New makes a Manager, and checks its options. The caller must add the queues before Run.
func New(o Options) (*Manager, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.EstimateFinalized == nil {
		o.EstimateFinalized = func() uint64 { return 0 }
	}
	m := &Manager{
		Options: o, outage: sendOutage{minDuration: o.Timing.Lease}, compute: newComputeLimits(), price: newPriceCache(o.Price, o.Now, o.SlotDuration),
		othersNeeded: make(chan struct{}, 1),
	}
	m.stopping, m.stop = context.WithCancel(context.Background())
	m.tracker, m.recorder = newTracker(m), newRecorder(m)
	return m, nil
}

// Add adds a queue. The first queue is the main one: it can be paused, and ReserveCapacity reserves
// its capacity.
func (m *Manager) Add(l *Queue) error {
	switch {
	case l.Handler == nil || l.Claim == nil:
		return errors.New("a queue needs a handler and a claim function")
	case l.Capacity < 1:
		return fmt.Errorf("a queue has capacity %d: expected at least 1", l.Capacity)
	case len(m.queues) == 0 && l.Probe == nil:
		return errors.New("the main queue needs a probe function")
	}
	l.inUse.limit, l.due = l.Capacity, make(chan struct{}, 1)
	m.queues = append(m.queues, l)
	return nil
}

// main is the queue of clients' submissions.
func (m *Manager) main() *Queue { return m.queues[0] }

// Start works on a job that was accepted with reserved capacity. prepared is its first transaction.
// The end of ctx does not cancel the first step.
func (m *Manager) Start(ctx context.Context, j *Job, prepared *Prepared) {
	j.accepted, j.prepared = m.Now(), prepared
	m.start(context.WithoutCancel(ctx), m.main(), j)
}

// ClaimSoon brings the main queue's next claim forward, because a job may be due.
func (m *Manager) ClaimSoon() { m.main().ClaimSoon() }

// signal wakes a loop; one pending signal is enough.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// InProgress returns how many jobs use this process's capacity, and how many landed jobs it tracks
// until they are final.
func (m *Manager) InProgress() (inFlight, landed int) {
	for _, l := range m.queues {
		inFlight += l.inUse.inUse()
	}
	return inFlight, m.tracker.landedCount()
}
