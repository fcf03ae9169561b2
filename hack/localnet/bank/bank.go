// Package bank is the ledger of the local chain: slots and blocks, accounts as
// of every slot that can still be read, and the execution of transactions
// under the rules of Agave (fees, rent, blockhash expiry, account ownership).
//
// A transaction executes in the open slot when it arrives; the order of
// arrival is the order in the block. Reads name a commitment level and see the
// state of that level's slot.
package bank

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
)

// MaxAge is the number of blocks for which a blockhash stays usable: one of
// height h serves up to block height h + MaxAge.
const MaxAge = 150

// Options configures a Bank. All fields are required.
type Options struct {
	// Genesis is the genesis hash.
	Genesis solana.Hash
	// ConfirmAfter and FinalizeAfter are the numbers of blocks on top of a
	// block that make it confirmed and finalized, 1 or more and ascending.
	ConfirmAfter  uint64
	FinalizeAfter uint64
	// History is the number of blocks that are kept, more than MaxAge and
	// FinalizeAfter together.
	History uint64
	// Clock tells the time of new blocks.
	Clock func() time.Time
	// Programs are the chain's programs, put into its accounts at genesis.
	Programs []Program
	// Faucet owns the lamports that exist at genesis.
	Faucet         solana.PublicKey
	FaucetLamports uint64
}

func (o *Options) validate() error {
	switch {
	case o.Genesis == solana.Hash{}:
		return errors.New("bank options: Genesis is missing, want a hash of 32 bytes")
	case o.ConfirmAfter < 1 || o.FinalizeAfter < o.ConfirmAfter:
		return fmt.Errorf("bank options: ConfirmAfter %d and FinalizeAfter %d, want 1 or more and ascending",
			o.ConfirmAfter, o.FinalizeAfter)
	case o.History <= MaxAge+o.FinalizeAfter:
		return fmt.Errorf("bank options: History is %d blocks, want more than %d", o.History, MaxAge+o.FinalizeAfter)
	case o.Clock == nil:
		return errors.New("bank options: Clock is missing")
	case o.FaucetLamports == 0:
		return errors.New("bank options: FaucetLamports is 0, nobody could pay a fee")
	}
	return nil
}

// Bank is the chain's state. Its methods may be called concurrently.
type Bank struct {
	opts     Options
	programs map[solana.PublicKey]Program

	mu       sync.RWMutex
	accounts accountStore
	chain    chain
	// hashes finds the closed blocks whose hash some reader can still use.
	hashes map[solana.Hash]*Block
	// messages finds the landed messages that could land again but for it.
	messages map[[sha256.Size]byte]*Block
	// bySignature and byAddress index the history; the latter in order.
	bySignature map[solana.Signature]*Landed
	byAddress   map[solana.PublicKey][]*Landed
}

// New makes a chain with its genesis block closed at slot 0 and slot 1 open.
// The error names the option that is missing or out of range.
func New(opts Options) (*Bank, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	b := &Bank{
		opts:        opts,
		programs:    make(map[solana.PublicKey]Program, len(opts.Programs)),
		accounts:    make(accountStore),
		hashes:      make(map[solana.Hash]*Block),
		messages:    make(map[[sha256.Size]byte]*Block),
		bySignature: make(map[solana.Signature]*Landed),
		byAddress:   make(map[solana.PublicKey][]*Landed),
	}
	for _, p := range opts.Programs {
		b.programs[p.ID] = p
		b.accounts.put(p.ID, 0, &p.Account)
	}
	b.accounts.put(opts.Faucet, 0, &Account{Lamports: opts.FaucetLamports, Owner: solana.SystemProgramID})
	now := opts.Clock()
	// The parent of genesis differs from one run to the next: a transaction
	// signed for an earlier run of the chain must not land in this one.
	var nanos [8]byte
	binary.LittleEndian.PutUint64(nanos[:], uint64(now.UnixNano()))
	b.chain = chain{{ParentHash: sha256.Sum256(append(opts.Genesis[:], nanos[:]...)), Time: now.Unix()}}
	b.advance(1)
	return b, nil
}

// Advance closes the open slot and opens the next, n times.
func (b *Bank) Advance(n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range n {
		b.advance(1)
	}
}

// Skip closes the open slot and passes over the next n slots without a block,
// as when a leader is down: the block height then grows slower than the slot.
func (b *Bank) Skip(n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(n + 1)
}

// advance closes the open block and opens one that many slots further.
func (b *Bank) advance(slots uint64) {
	closed := b.chain.open()
	closed.Hash = closed.hash()
	b.hashes[closed.Hash] = closed
	b.chain = append(b.chain, &Block{
		Slot:         closed.Slot + slots,
		Height:       closed.Height + 1,
		ParentSlot:   closed.Slot,
		ParentHash:   closed.Hash,
		Time:         b.opts.Clock().Unix(),
		Transactions: closed.Transactions,
	})
	b.expire()
}

// expire forgets what no read at finalized or newer can see any more.
func (b *Bank) expire() {
	finalized := b.chain.below(b.opts.FinalizeAfter)
	for _, key := range finalized.written {
		b.accounts.prune(key, finalized.Slot)
	}
	finalized.written = nil
	// A hash is usable in the finalized block up to MaxAge below it.
	if dead := b.chain.below(b.opts.FinalizeAfter + MaxAge + 1); dead.Height+b.opts.FinalizeAfter+MaxAge < b.chain.open().Height {
		delete(b.hashes, dead.Hash)
		for _, l := range dead.Landed {
			delete(b.messages, l.hash)
		}
	}
	if uint64(len(b.chain)) > b.opts.History {
		b.forget(b.chain[0])
		b.chain[0] = nil
		b.chain = b.chain[1:]
	}
}

// forget takes the oldest block's transactions out of the indices.
func (b *Bank) forget(oldest *Block) {
	for _, l := range oldest.Landed {
		delete(b.bySignature, l.Signature())
		for _, key := range l.Keys {
			if rest := b.byAddress[key][1:]; len(rest) > 0 {
				b.byAddress[key] = rest
			} else {
				delete(b.byAddress, key)
			}
		}
	}
}

// commit puts an executed transaction into the open block.
func (b *Bank) commit(tx *Transaction, out *outcome) {
	open := b.chain.open()
	landed := &Landed{Transaction: tx, Block: open, Index: len(open.Landed), Meta: out.meta}
	open.Landed = append(open.Landed, landed)
	open.Transactions++
	b.messages[tx.hash] = open
	b.bySignature[tx.Signature()] = landed
	for _, key := range tx.Keys {
		b.byAddress[key] = append(b.byAddress[key], landed)
	}
	for i := range out.changed {
		work := out.changed[i]
		var account *Account
		if work.Lamports > 0 {
			account = &work.Account
		}
		b.accounts.put(work.key, open.Slot, account)
		open.written = append(open.written, work.key)
	}
}

// Submit executes a transaction in the open slot. landed is false when it
// never enters a block, and err says why; otherwise err is the transaction's
// own outcome. Signatures must have been verified.
func (b *Bank) Submit(tx *Transaction) (landed bool, err *TransactionError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.execute(tx, b.chain.open())
	if !out.landed {
		return false, out.meta.Err
	}
	b.commit(tx, out)
	return true, out.meta.Err
}
