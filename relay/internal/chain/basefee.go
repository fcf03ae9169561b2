package chain

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// feeInterval is how often the base fee is read. The fee changes only at the start of an epoch, at
// most once a day.
const feeInterval = 5 * time.Minute

// feeUnits are the compute units of the second message whose fee is asked for; the first requests
// none. The maximum of a transaction makes the difference of the two as exact as possible.
const feeUnits = 1_400_000

// BaseFeeRate tracks the network's base fee. With several endpoints, two have to report the same
// fee.
type BaseFeeRate struct {
	endpoints *Endpoints
	log       *slog.Logger
	fee       atomic.Pointer[shieldpool.BaseFee]
}

// NewBaseFeeRate makes a BaseFeeRate that reads from the endpoints.
func NewBaseFeeRate(e *Endpoints, log *slog.Logger) *BaseFeeRate {
	return &BaseFeeRate{endpoints: e, log: log}
}

// Fee returns the last base fee that was read; the zero value, which stands for the fee of one
// signature, before the first read.
func (r *BaseFeeRate) Fee() shieldpool.BaseFee {
	if fee := r.fee.Load(); fee != nil {
		return *fee
	}
	return shieldpool.BaseFee{}
}

// Run reads the fee until the context ends. A failed read is worth no warning: the last fee stays,
// and what was really paid is in the ledger.
func (r *BaseFeeRate) Run(ctx context.Context) {
	for {
		if err := r.Read(ctx); err != nil {
			r.log.DebugContext(ctx, "base fee not read", "error", err)
		}
		if !sleep(ctx, feeInterval) {
			return
		}
	}
}

// Read reads the fee once. After an error the last fee is kept.
func (r *BaseFeeRate) Read(ctx context.Context) error {
	hash, err := r.endpoints.LatestBlockhash(ctx)
	if err != nil {
		return err
	}
	var fees [2]uint64
	for i, units := range []uint32{0, feeUnits} {
		message, err := feeMessage(units, hash.Hash)
		if err != nil {
			return err
		}
		if fees[i], err = r.endpoints.feeForMessage(ctx, message); err != nil {
			return err
		}
	}
	if fees[0] == 0 || fees[1] < fees[0] {
		return fmt.Errorf("fees of %d and %d lamports for 0 and %d compute units are impossible: expected a first fee above 0 and no lower second one", fees[0], fees[1], feeUnits)
	}
	fee := shieldpool.BaseFee{Fixed: fees[0], PerMillion: ((fees[1]-fees[0])*1_000_000 + feeUnits - 1) / feeUnits}
	if old := r.fee.Swap(&fee); old != nil && *old != fee {
		r.log.InfoContext(ctx, "base fee changed", "lamports", fee.Fixed, "lamports_per_million_units", fee.PerMillion, "before", old.Fixed)
	}
	return nil
}

// feeMessage is a message with one signature that requests the compute units and offers no price.
func feeMessage(units uint32, blockhash solana.Hash) ([]byte, error) {
	limit := solana.NewInstruction(solana.ComputeBudget, nil, binary.LittleEndian.AppendUint32([]byte{2}, units))
	tx, err := solana.NewTransaction([]solana.Instruction{limit}, blockhash, solana.TransactionPayer(solana.PublicKey{0: 0xfe}))
	if err != nil {
		return nil, fmt.Errorf("lay out message: %w", err)
	}
	return tx.Message.MarshalBinary()
}

// feeForMessage asks for the fee of a message. With several endpoints, two have to agree.
func (e *Endpoints) feeForMessage(ctx context.Context, message []byte) (uint64, error) {
	q := query[*slotted[uint64]]{
		method: "getFeeForMessage", urgency: outbound.Background, roles: []Role{RoleRead}, unconfirmed: true,
		do: func(ctx context.Context, source askedEndpoint) (*slotted[uint64], error) {
			lamports, slot, err := source.FeeForMessage(ctx, message)
			return &slotted[uint64]{lamports, slot}, err
		},
		slot: func(s *slotted[uint64]) uint64 { return s.slot },
	}
	first, origin, err := askWithIndex(ctx, e, q)
	if err == nil && e.hasOther(origin) {
		same := func(a, b *slotted[uint64]) bool { return a.value == b.value }
		first, err = corroborate(ctx, e, q, first, origin, same, func(*endpoint) bool { return false })
	}
	if err != nil {
		return 0, err
	}
	return first.value, nil
}
