package chain

import (
	"encoding/binary"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// ownBlockhashEvery is the longest time for which a process uses only other processes' blockhashes. Its own
// calls show it the chain's height and which endpoints are behind.
const ownBlockhashEvery = 5 * time.Second

func encodeBlockhash(h onchain.Blockhash) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(h.Hash[:], h.Slot), h.LastValidBlockHeight)
}

func decodeBlockhash(b []byte) (h onchain.Blockhash, ok bool) {
	n := copy(h.Hash[:], b)
	if len(b) != n+16 {
		return h, false
	}
	h.Slot, h.LastValidBlockHeight = binary.LittleEndian.Uint64(b[n:]), binary.LittleEndian.Uint64(b[n+8:])
	return h, true
}

// ownBlockhashDue reports whether this process has to read a blockhash itself.
func (e *Endpoints) ownBlockhashDue() bool {
	e.hashes.mu.Lock()
	defer e.hashes.mu.Unlock()
	return e.now().Sub(e.hashes.ownAt) >= ownBlockhashEvery
}

// hasSeveral reports whether several endpoints can be compared.
func (e *Endpoints) hasSeveral() bool { return len(e.withRole(RoleRead)) > 1 }

// confirms reports whether slot and height of the blockhash are certain, by what this process knows of the
// chain. With several endpoints it raises the last valid height to what their agreement allows, as
// verifiedLastValid does.
func (e *Endpoints) confirms(h *onchain.Blockhash) bool {
	now := e.now()
	if !e.Corroborated(h.Slot) || e.slots.HighestIfUnknown(now) > 0 || h.Slot+e.maxLag < e.slots.Best(now) || h.LastValidBlockHeight < blockhashLifetime {
		return false
	}
	several := e.hasSeveral()
	bound, ok := e.heights.bound(several, now)
	if !ok {
		return false
	}
	above, below := bound.distance(block{h.Slot, h.LastValidBlockHeight - blockhashLifetime})
	if max(above, below) > e.heights.slack {
		return false
	}
	if several {
		_, most := bound.heightsAt(h.Slot)
		h.LastValidBlockHeight = max(h.LastValidBlockHeight, most+blockhashLifetime)
	}
	return true
}

// bound returns what limits the height of other processes' blockhashes: the agreement of several endpoints,
// or the last height that the only one reported. It returns false if there is none.
func (h *heights) bound(several bool, now time.Time) (agreement, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if several {
		return h.agreed, h.hasAgreement()
	}
	for _, report := range h.reports {
		if own := report.newest[byBlockhash]; !own.at.IsZero() && now.Sub(own.at) <= reportMaxAge {
			return own.block.agreement(), true
		}
	}
	return agreement{}, false
}
