package spendcap

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Limits are caps in lamports; 0 means that there is no cap.
type Limits struct {
	// Hour and Day cap what the fleet spends in any hour and any day.
	Hour, Day uint64
	// TransferDay caps the spending on transfers in any day. Transfers pay the pool no fee, so
	// anybody could make the relay pay the rent of any number of them.
	TransferDay uint64
}

// Options configure Caps. Every field except Limits is required. If Limits is zero, nothing is
// refused.
type Options struct {
	Limits Limits
	Store  BucketStore
	Log    *slog.Logger
	Now    func() time.Time
}

// capName names a cap. The names are a fixed set, so they can be a metric's label.
type capName string

const (
	capHour      capName = "hour"
	capDay       capName = "day"
	capTransfers capName = "transfers_day"
)

// Caps refuse spending beyond the limits. The spending of all processes of the fleet counts
// together. Safe for concurrent use.
type Caps struct {
	limits Limits
	store  BucketStore
	log    *slog.Logger
	now    func() time.Time
	flight singleflight.Group

	mu         sync.Mutex
	caps       []*spendCap
	sumReadAt  time.Time // when the newest sum was requested; zero before the first sum
	allowances []*allowance
}

// spendCap is one cap and what counts towards it.
type spendCap struct {
	name          capName
	description   string // tells clients that the cap is reached
	limit         uint64
	length        time.Duration
	transfersOnly bool

	window  window
	pending uint64 // allowed by this process, and perhaps not yet in the window
	// lastRefused is the amount that was refused last; 0 while the cap is not reached.
	lastRefused uint64
}

// New makes caps. It makes no call.
func New(o Options) (*Caps, error) {
	if o.Store == nil || o.Log == nil || o.Now == nil {
		return nil, errors.New("spend caps need a store, a logger and a clock")
	}
	return &Caps{limits: o.Limits, store: o.Store, log: o.Log, now: o.Now, caps: []*spendCap{
		{name: capHour, description: "the relay has spent all that its operator allows it in an hour", limit: o.Limits.Hour, length: hour},
		{name: capDay, description: "the relay has spent all that its operator allows it in a day", limit: o.Limits.Day, length: day},
		{name: capTransfers, description: "the relay has spent all that its operator allows it in a day on transfers, which pay no fee", limit: o.Limits.TransferDay, length: day, transfersOnly: true},
	}}, nil
}

// Allow permits an attempt that costs at most lamports, fees and rent together. The attempt counts
// until done is called. If the caller passes recorded as true, the attempt also counts after that,
// until the database's sum contains it. Only the first call of done has an effect. transfer is set
// for an attempt that pays the pool no fee. The sum is at most 2 s old. The refusal is
// spend_cap_reached. An error of the store also means that the attempt is not permitted.
func (c *Caps) Allow(ctx context.Context, transfer bool, lamports uint64) (done func(recorded bool), err error) {
	a := &allowance{transfer: transfer, lamports: lamports}
	if err := c.check(ctx, transfer, lamports, a); err != nil {
		return nil, err
	}
	return func(recorded bool) { c.endAllowance(a, recorded) }, nil
}

// Ready returns the same errors as Allow, but counts nothing. It is for work for which no attempt
// is made yet.
func (c *Caps) Ready(ctx context.Context, transfer bool, lamports uint64) error {
	return c.check(ctx, transfer, lamports, nil)
}

// Usage is how much of a cap is used.
type Usage struct {
	// Cap is hour, day or transfers_day.
	Cap string
	// Limit is in lamports; 0 means that there is no cap. Spent is the amount that counts towards
	// the limit.
	Limit, Spent uint64
	// Reached is true if an attempt was refused and would still be refused.
	Reached bool
}

// Usage returns how much of each cap is used, also of caps without a limit. The sum is at most 2 s
// old. The error is the store's.
func (c *Caps) Usage(ctx context.Context) ([]Usage, error) {
	if err := c.ensureFresh(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Usage, len(c.caps))
	for i, s := range c.caps {
		out[i] = Usage{Cap: string(s.name), Limit: s.limit, Spent: s.window.spent + s.pending, Reached: s.lastRefused > 0}
	}
	return out, nil
}
