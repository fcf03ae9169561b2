package chain

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// ownBlockhashEvery is the longest time for which a process uses only other processes' blockhashes. Its own
// calls show it the chain's height and which endpoints are behind.
const ownBlockhashEvery = 5 * time.Second

// blockhashOfFleet reads a blockhash, unless another process of the fleet has just read one. The read began
// at that time.
func (e *Endpoints) blockhashOfFleet(ctx context.Context) (h onchain.Blockhash, began time.Time, err error) {
	read := func(ctx context.Context) ([]byte, uint64) {
		began = e.now()
		if h, err = e.readBlockhash(ctx); err != nil || !e.agrees(h) {
			return nil, 0
		}
		e.hashes.mu.Lock()
		e.hashes.readAt = began
		e.hashes.mu.Unlock()
		return binary.LittleEndian.AppendUint64(h.Hash[:], h.LastValidBlockHeight), h.Slot
	}
	genesis := e.knownGenesis()
	e.hashes.mu.Lock()
	readAt := e.hashes.readAt
	e.hashes.mu.Unlock()
	if e.readOnce == nil || genesis.IsZero() {
		read(ctx)
		return h, began, err
	}
	e.readOnce(ctx, "blockhash "+genesis.String(), func(value []byte, slot uint64, age time.Duration) bool {
		if age >= hashRenewAge || len(value) != len(h.Hash)+8 || e.now().Sub(readAt) >= ownBlockhashEvery {
			return false
		}
		shared := onchain.Blockhash{Hash: solana.Hash(value[:len(h.Hash)]), Slot: slot, LastValidBlockHeight: binary.LittleEndian.Uint64(value[len(h.Hash):])}
		if !e.agrees(shared) {
			return false
		}
		h, began, err = shared, e.now().Add(-age), nil
		return true
	}, read)
	return h, began, err
}

// agrees reports whether this process's knowledge of the chain is certain, and confirms slot and height of the
// blockhash.
func (e *Endpoints) agrees(h onchain.Blockhash) bool {
	if !e.Corroborated(h.Slot) || h.Slot+e.maxLag < e.slots.Best(e.now()) || h.LastValidBlockHeight < blockhashLifetime {
		return false
	}
	b := block{h.Slot, h.LastValidBlockHeight - blockhashLifetime}
	a, ok := e.heights.agreedOn()
	if !ok {
		return len(e.withRole(RoleRead)) == 1 && b.height <= b.slot
	}
	above, below := a.distance(b)
	return max(above, below) <= e.heights.slack
}
