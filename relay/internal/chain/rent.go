package chain

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// rentInterval is how often the rate of rent is read. A read a minute suffices: the rate
	// changes only at the start of an epoch, at most once a day.
	rentInterval = time.Minute
	// rentRetry is the pause after the first failed read while the rate is unknown. It doubles with
	// each further failure, up to rentInterval.
	rentRetry = 2 * time.Second
)

// errNoRentSysvar reports an endpoint without the rent sysvar, which every chain has.
var errNoRentSysvar = errors.New("the rent sysvar does not exist: check the RPC URL")

// RentRate tracks the network's rate of rent. With several endpoints, two have to report the same
// rate.
type RentRate struct {
	account func(ctx context.Context, key solana.PublicKey) (*onchain.Account, error)
	log     *slog.Logger
	rate    atomic.Uint64
}

// NewRentRate makes a RentRate that reads from the endpoints.
func NewRentRate(e *Endpoints, log *slog.Logger) *RentRate {
	return &RentRate{account: e.CorroboratedAccount, log: log}
}

// Rate returns the last rate that was read; 0 before the first read.
func (r *RentRate) Rate() shieldpool.Rent { return shieldpool.Rent(r.rate.Load()) }

// Run reads the rate until the context ends. It warns once for each series of failures.
func (r *RentRate) Run(ctx context.Context) {
	pause, failing := rentRetry, false
	for {
		err := r.Read(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			r.log.WarnContext(ctx, "reading the rate of rent failed", "rate", r.Rate(), "error", err)
		}
		failing = err != nil
		wait := rentInterval
		if r.Rate() == 0 {
			wait, pause = pause, min(2*pause, rentInterval)
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

// Read reads the rate once. After an error the last rate is kept.
func (r *RentRate) Read(ctx context.Context) error {
	a, err := r.account(ctx, solana.SysVarRentPubkey)
	if err != nil {
		return err
	}
	if a == nil {
		return errNoRentSysvar
	}
	rate, err := shieldpool.ParseRent(a.Data)
	if err != nil {
		return err
	}
	if old := r.rate.Swap(uint64(rate)); old != uint64(rate) && old != 0 {
		r.log.InfoContext(ctx, "rate of rent changed", "lamports_per_byte", rate, "before", old)
	}
	return nil
}
