package submission

import (
	"errors"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// HoldFormat is the hold reason of a submission whose notes are too long for every transaction
// format that this relay sends. A relay that sends longer transactions has accepted it.
const HoldFormat = "transaction_format"

// SendFormats returns the formats that transactions may have now, the usual one first.
func (h *Handler) SendFormats() []shieldpool.Format {
	if h.Formats == nil {
		return []shieldpool.Format{shieldpool.OlderFormat(h.Table)}
	}
	return h.Formats()
}

// format returns the first format that has room for the call's notes, or a deferral when none has.
func (h *Handler) format(c *shieldpool.Call) (shieldpool.Format, error) {
	size := shieldpool.NoteEnvelopeSize(c.Notes)
	for _, f := range h.SendFormats() {
		if size <= h.bounds[f][c.Kind()] {
			return f, nil
		}
	}
	return "", &txmgr.Deferral{Reason: HoldFormat, Fault: true, Cause: errors.New("its notes fit no transaction that this relay sends now: set the transaction format to auto again, or the lookup table; the submission ends when its root is too old")}
}
