// Package bank is the state of the local chain: slots and blocks, accounts at
// every slot that can still be read, and the execution of transactions under
// the rules of Agave (fees, rent, blockhash expiry, account ownership).
//
// A transaction executes in the open slot when it arrives. When the open block
// is full, it waits for a later block. The order in a block is the order of
// execution. A read names a commitment level and a node, which may lag, and sees
// the state of the level's slot on that node. A fork undoes blocks that are not
// finalized.
package bank

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
)

// MaxAge is the number of blocks for which a blockhash stays valid: the hash of
// the block at height h is valid up to block height h + MaxAge.
const MaxAge = 150

// MaxBehind is the largest lag, in slots, of a node that Behind returns. A node that lags this
// far knows no valid blockhash. It costs memory, because the bank keeps that many more
// versions of every account that changes; a short History leaves room for less.
const MaxBehind = MaxAge

// Options configures a Bank. Fields are required unless they name a default.
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
	// Limits bounds the compute of a block; its zero value is mainnet's.
	Limits BlockLimits
	// Leaders makes the network busy; nil for leaders that take what their blocks have room for.
	Leaders *Leaders
	// Rent is the rate of rent at genesis; 0 is DefaultRent.
	Rent Rent
	// Clock returns the time of new blocks.
	Clock func() time.Time
	// Programs are the chain's programs, put into its accounts at genesis.
	Programs []Program
	// Accounts are further accounts that exist at genesis, by address.
	Accounts map[solana.PublicKey]Account
	// Past is the history that the chain begins with; its zero value is none.
	Past Past
	// Faucet is the address of the wallet that holds FaucetLamports at genesis.
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
		return errors.New("bank options: FaucetLamports is 0: expected funds for fees")
	}
	return o.Limits.validate()
}

// Bank is the chain's state. Its methods may be called concurrently.
//
// Stored accounts are immutable, so that only loading them and writing the
// result need mu. Simulations run concurrently with each other, with reads and
// with the leader's own execution.
type Bank struct {
	opts      Options
	maxBehind uint64
	programs  map[solana.PublicKey]*loadedProgram

	// leaderMu is locked by every call that changes the chain, from reading the state
	// to writing the result. It is locked before mu.
	leaderMu sync.Mutex
	// leaderMu guards used, waiting, onSlot, nextRent and missed. missed are the slots since the open
	// block for which a leader that is down makes no block.
	missed   uint64
	used     blockUse
	waiting  waitingList
	onSlot   map[*byte]func()
	nextRent Rent

	mu        sync.RWMutex
	accounts  accountStore
	chain     chain
	migration migration
	// hashes finds closed blocks by their blockhash while some node can still
	// accept the blockhash.
	hashes map[solana.Hash]*Block
	// messages finds the block of a landed message by the message's hash, so that
	// no message lands twice.
	messages map[[sha256.Size]byte]*Block
	// bySignature and byAddress index the history; byAddress in the chain's order.
	bySignature map[solana.Signature]*Landed
	byAddress   map[solana.PublicKey][]*Landed
}

// New makes a chain with its genesis block closed at slot 0 and slot 1 open.
// The error names the option that is missing or out of range.
func New(opts Options) (*Bank, error) {
	opts.Limits, opts.Rent = opts.Limits.withDefaults(), cmp.Or(opts.Rent, DefaultRent)
	if err := opts.validate(); err != nil {
		return nil, err
	}
	b := &Bank{
		opts:        opts,
		maxBehind:   min(MaxBehind, opts.History-MaxAge-opts.FinalizeAfter-1),
		nextRent:    opts.Rent,
		used:        newBlockUse(),
		onSlot:      make(map[*byte]func()),
		programs:    make(map[solana.PublicKey]*loadedProgram, len(opts.Programs)),
		accounts:    make(accountStore),
		hashes:      make(map[solana.Hash]*Block),
		messages:    make(map[[sha256.Size]byte]*Block),
		bySignature: make(map[solana.Signature]*Landed),
		byAddress:   make(map[solana.PublicKey][]*Landed),
	}
	for _, p := range opts.Programs {
		b.programs[p.ID] = loadProgram(p)
		b.accounts.put(p.ID, 0, &p.Account)
	}
	for key, account := range opts.Accounts {
		b.accounts.put(key, 0, &account)
	}
	b.accounts.put(opts.Faucet, 0, &Account{Lamports: opts.FaucetLamports, Owner: solana.SystemProgramID})
	now := opts.Clock()
	// The parent hash of genesis differs from one run to the next, so that a
	// transaction signed for an earlier run cannot land in this one.
	var nanos [8]byte
	binary.LittleEndian.PutUint64(nanos[:], uint64(now.UnixNano()))
	b.chain = chain{{ParentHash: sha256.Sum256(append(opts.Genesis[:], nanos[:]...)), at: now, Rent: opts.Rent}}
	b.advance(1)
	b.fill()
	return b, nil
}

// Advance closes the open slot and opens the next, n times.
func (b *Bank) Advance(n uint64) {
	for range n {
		b.next(1)
	}
}

// Skip closes the open slot and skips the next n slots, which have no block, as
// when a leader is down. The block height then grows slower than the slot.
func (b *Bank) Skip(n uint64) { b.next(n + 1) }

// next advances the chain by a number of slots as advance does. It then calls the
// functions of OnSlot and lands waiting transactions.
func (b *Bank) next(slots uint64) {
	b.leaderMu.Lock()
	defer b.leaderMu.Unlock()
	if b.leaderDown(slots) {
		return
	}
	slots, b.missed = max(slots, b.missed), 0
	b.mu.Lock()
	b.advance(slots)
	b.migrate(slots)
	paused := b.migration.paused()
	b.mu.Unlock()
	b.slotChanged()
	b.used = newBlockUse()
	if !paused {
		b.landWaiting()
	}
}

// advance closes the open block and opens the next. The new slot is the old one plus
// slots.
func (b *Bank) advance(slots uint64) {
	closed := b.chain.newest()
	closed.Hash = closed.hash()
	b.hashes[closed.Hash] = closed
	b.openBlock(closed.Slot+slots, closed.Height+1)
	b.expire()
}

// openBlock appends an open block to a chain whose blocks are all closed.
func (b *Bank) openBlock(slot, height uint64) {
	parent := b.chain.newest()
	b.chain = append(b.chain, &Block{
		Slot:         slot,
		Height:       height,
		ParentSlot:   parent.Slot,
		ParentHash:   parent.Hash,
		at:           b.opts.Clock(),
		Transactions: parent.Transactions,
		Rent:         b.nextRent,
		price:        b.opts.Leaders.price(slot / leaderWindow),
	})
}

// expire drops the account versions, blockhashes and messages that even the most
// lagging node no longer needs, and the oldest block when History is full.
func (b *Bank) expire() {
	if b.migration.paused() {
		return // its blocks will be deleted
	}
	depth := b.opts.FinalizeAfter + b.maxBehind
	oldest := b.chain.below(depth)
	for _, key := range oldest.written {
		b.accounts.prune(key, oldest.Slot)
	}
	oldest.written = nil
	// At the block oldest, the hashes of the MaxAge blocks below it are still valid.
	if expired := b.chain.below(depth + MaxAge + 1); expired.Height+depth+MaxAge < b.chain.newest().Height {
		delete(b.hashes, expired.Hash)
		for _, l := range expired.Landed {
			delete(b.messages, l.hash)
		}
	}
	if uint64(len(b.chain)) > b.opts.History {
		b.forget(b.chain[0])
		b.chain[0] = nil
		b.chain = b.chain[1:]
	}
}

// forget removes the oldest block's transactions from the indices.
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
	open := b.chain.newest()
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
		var stored *Account
		if work.Lamports > 0 {
			stored = &work.Account
		}
		b.accounts.put(work.key, open.Slot, stored)
		open.written = append(open.written, work.key)
	}
}

// Submit executes a transaction in the open slot. When the open block is full,
// the transaction waits for a later block. landed says whether the transaction
// is in a block. If it is, err is the transaction's outcome. If not, err is nil while
// the transaction waits, and otherwise says why the transaction is refused. The
// caller has verified the signatures.
func (b *Bank) Submit(tx *Transaction) (landed bool, err *TransactionError) {
	b.leaderMu.Lock()
	defer b.leaderMu.Unlock()
	return b.land(tx)
}

// land is Submit for a caller that holds leaderMu.
func (b *Bank) land(tx *Transaction) (landed bool, err *TransactionError) {
	b.mu.RLock()
	job, err := b.prepare(tx, b.chain.newest())
	paused := b.migration.paused()
	b.mu.RUnlock()
	if err != nil {
		return false, err
	}
	if paused || b.missed > 0 || job.budget.Price < b.chain.newest().price {
		return false, nil // the leader drops it
	}
	tx = job.tx
	if b.waiting.has(tx) {
		return false, nil
	}
	// Before the transaction runs, its largest possible cost must fit the limits.
	maxCost := tx.cost(job.budget.Units, job.budget.LoadedData)
	if !b.used.fits(b.opts.Limits, tx.Message, maxCost) {
		b.waiting.put(waiting{tx: tx, price: job.budget.Price, cost: maxCost})
		return false, nil
	}
	out := job.run()
	if !out.landed {
		return false, out.meta.Err
	}
	b.used.add(tx.Message, tx.cost(out.meta.Units, job.loadedBytes()))
	for i := range out.changed {
		out.changed[i].applyDeferred()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.commit(tx, out)
	return true, out.meta.Err
}
