package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// keptPaymentSlots is the number of slots whose payments are kept: five minutes of 200 ms, in which the ledger
	// runs ten times.
	keptPaymentSlots = 1500
	// blockPaymentsTimeout bounds reads and writes of payments, which the ledger can do without.
	blockPaymentsTimeout = 200 * time.Millisecond
)

// KeepPayments stores what fee payers paid in a block of the slot, in place of what is stored for the same payers
// and slot.
func (l *Ledger) KeepPayments(ctx context.Context, slot uint64, payments []*onchain.Payment) error {
	byPayer := map[solana.PublicKey][]*onchain.Payment{}
	for _, p := range payments {
		byPayer[p.FeePayer] = append(byPayer[p.FeePayer], p)
	}
	var payers [][]byte // in order, so that processes that store the same do not wait for each other
	var values []string
	for _, payer := range slices.SortedFunc(maps.Keys(byPayer), func(a, b solana.PublicKey) int { return slices.Compare(a[:], b[:]) }) {
		value, err := json.Marshal(byPayer[payer])
		if err != nil {
			return fmt.Errorf("encode payments in a block: %w", err)
		}
		payers, values = append(payers, payer.Bytes()), append(values, string(value))
	}
	ctx, cancel := context.WithTimeout(ctx, blockPaymentsTimeout)
	defer cancel()
	// The WITH deletes old rows in the same round trip.
	_, err := l.store.Pool.Exec(ctx, `WITH old AS (DELETE FROM block_payments WHERE slot < $1::bigint - $4)
		INSERT INTO block_payments (payer, slot, payments) SELECT payer, $1, payments::json FROM unnest($2::bytea[], $3::text[]) AS p (payer, payments)
		ON CONFLICT (payer, slot) DO UPDATE SET payments = EXCLUDED.payments`, slot, payers, values, keptPaymentSlots)
	if err != nil {
		return unavailable(fmt.Errorf("keep payments in a block: %w", err))
	}
	return nil
}

// BlockPayments implements ledger.Store.
func (l *Ledger) BlockPayments(ctx context.Context, payer solana.PublicKey, slots []uint64) (ledger.BlockPayments, error) {
	ctx, cancel := context.WithTimeout(ctx, blockPaymentsTimeout)
	defer cancel()
	rows, err := l.store.Pool.Query(ctx, `SELECT payments FROM block_payments WHERE payer = $1 AND slot = ANY($2)`, payer.Bytes(), slots)
	if err != nil {
		return nil, unavailable(fmt.Errorf("read payments in blocks: %w", err))
	}
	found := ledger.BlockPayments{}
	var payments []onchain.Payment
	_, err = pgx.ForEachRow(rows, []any{&payments}, func() error {
		for i := range payments {
			found[payments[i].Signature] = &payments[i]
		}
		payments = nil
		return nil
	})
	if err != nil {
		return nil, unavailable(fmt.Errorf("read payments in blocks: %w", err))
	}
	return found, nil
}
