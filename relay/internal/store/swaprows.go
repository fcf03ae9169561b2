package store

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// swapRow has the columns of a swap's second leg. All are null if the submission is not a swap,
// or if its first leg has not landed.
type swapRow struct {
	phase, holdReason *string
	timeout, slot     *int64
	sig               []byte
	finalized         *bool
	endedAt, created  *time.Time
}

func (w *swapRow) targets() []any {
	return []any{&w.phase, &w.timeout, &w.holdReason, &w.sig, &w.slot, &w.finalized, &w.endedAt, &w.created}
}

func (w *swapRow) swap() *submission.Swap {
	if w.phase == nil {
		return nil
	}
	out := &submission.Swap{
		Phase: submission.Phase(*w.phase), TimeoutSlot: uint64(*w.timeout), //nolint:gosec // stored from uint64 below 2^63
		HeldBy: valueOrZero(w.holdReason), Signature: signature(w.sig), CreatedAt: *w.created,
	}
	if out.Signature != nil { // nil until the second leg has landed
		out.Slot, out.Finalized, out.EndedAt = uint64(*w.slot), *w.finalized, w.endedAt //nolint:gosec // as above
	}
	return out
}

// swapTerms decodes what shieldpool.SwapTerms.Bytes encoded. Without bytes the submission is no
// swap, and the result is nil.
func swapTerms(b []byte) (*shieldpool.SwapTerms, error) {
	switch len(b) {
	case 0:
		return nil, nil //nolint:nilnil // nil is "no swap", as documented
	case 72:
		return &shieldpool.SwapTerms{
			OutputMint: solana.PublicKeyFromBytes(b[:32]), RecipientATA: solana.PublicKeyFromBytes(b[32:64]), MinOutput: binary.LittleEndian.Uint64(b[64:]),
		}, nil
	default:
		return nil, fmt.Errorf("stored swap terms have %d bytes, expected 72", len(b))
	}
}
