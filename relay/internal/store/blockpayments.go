package store

import (
	"context"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/onchain"
)

// keptPaymentSlots is the number of slots whose payments are kept: five minutes of 200 ms, in which the ledger
// runs ten times.
const keptPaymentSlots = 1500

// KeepPayments stores the payments of the fleet's payers in a block of the slot, instead of those that are
// stored for it. If it fails, the ledger reads the payments from the chain.
func (l *Ledger) KeepPayments(ctx context.Context, slot uint64, payments []*onchain.Payment) {
	_, _ = l.store.Pool.Exec(ctx, `WITH old AS (DELETE FROM block_payments WHERE slot < $1::bigint - $3)
		INSERT INTO block_payments (slot, payments) VALUES ($1, $2)
		ON CONFLICT (slot) DO UPDATE SET payments = EXCLUDED.payments`, slot, payments, keptPaymentSlots)
}

// BlockPayments implements ledger.Store.
func (l *Ledger) BlockPayments(ctx context.Context, slots []uint64) (map[solana.Signature]*onchain.Payment, error) {
	rows, err := l.store.Pool.Query(ctx, `SELECT payments FROM block_payments WHERE slot = ANY($1)`, slots)
	if err != nil {
		return nil, unavailable(fmt.Errorf("read payments in blocks: %w", err))
	}
	found := map[solana.Signature]*onchain.Payment{}
	var payments []*onchain.Payment
	_, err = pgx.ForEachRow(rows, []any{&payments}, func() error {
		for _, p := range payments {
			found[p.Signature] = p
		}
		payments = nil
		return nil
	})
	if err != nil {
		return nil, unavailable(fmt.Errorf("read payments in blocks: %w", err))
	}
	return found, nil
}
