package bank

import (
	"slices"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
)

// outcome is the effect of a transaction, before it is committed.
type outcome struct {
	meta Meta
	// landed says that the fee payer is charged and the transaction enters the
	// block.
	landed bool
	// changed are the accounts to store.
	changed []workAccount
}

func unprocessable(err *TransactionError) *outcome {
	return &outcome{meta: Meta{Err: err, Logs: []string{}}}
}

// job is a transaction with copies of all the state that it needs, so that it
// runs without a lock.
type job struct {
	tx       *Transaction
	budget   Budget
	slot     uint64
	rent     Rent
	programs map[solana.PublicKey]*loadedProgram
	accounts []workAccount
	mints    mintDecimals
}

// prepare loads the state of a block that a transaction needs. It returns an
// error for a transaction that cannot enter the block; run checks the fee later.
// The caller holds mu.
func (b *Bank) prepare(tx *Transaction, at *Block) (*job, *TransactionError) {
	tx, err := b.resolve(tx, at)
	if err != nil {
		return nil, err
	}
	if err := b.check(tx, at); err != nil {
		return nil, err
	}
	budget, err := tx.Budget()
	if err != nil {
		return nil, err
	}
	accounts := b.load(tx.Keys, at.Slot)
	return &job{
		tx: tx, budget: budget, slot: at.Slot, rent: at.Rent, programs: b.programs, accounts: accounts,
		mints: b.mintsOf(tx, accounts, at),
	}, nil
}

// loadedAccountOverhead is the number of bytes that each loaded account counts for besides its
// data (SIMD-0186).
const loadedAccountOverhead = 64

// loadedBytes returns the size in bytes of the accounts before the transaction. The code of a program
// is not part of this chain.
func (j *job) loadedBytes() (bytes uint64) {
	for i := range j.accounts {
		if j.accounts[i].Lamports > 0 {
			bytes += loadedAccountOverhead + uint64(len(j.accounts[i].Data))
		}
	}
	return bytes
}

// run runs the transaction on the copies. The caller commits the outcome, or
// discards it after a simulation.
func (j *job) run() *outcome {
	tx, budget := j.tx, j.budget
	out := &outcome{landed: true, meta: Meta{
		Fee: budget.Fee(len(tx.Signatures)), Price: budget.Price, Logs: []string{}, Inner: []rpc.InnerInstruction{},
		LoadedData: j.loadedBytes(), PreBalances: balances(j.accounts), PreTokens: j.mints.tokenBalances(j.accounts),
	}}
	accounts := slices.Clone(j.accounts)
	if err := chargeFee(&accounts[0].Account, out.meta.Fee, j.rent); err != nil {
		return unprocessable(err)
	}
	payer := accounts[0]
	if err := j.checkPrograms(); err != nil {
		out.meta.Err = err
	} else {
		x := &execution{slot: j.slot, rent: j.rent, programs: j.programs, accounts: accounts, unitsLeft: budget.Units}
		out.meta.Err = x.runAll(tx, j.accounts)
		out.meta.Logs, out.meta.Units = x.logs, budget.Units-x.unitsLeft
		out.meta.Inner = slices.DeleteFunc(x.inner, func(in rpc.InnerInstruction) bool { return len(in.Instructions) == 0 })
	}
	if out.meta.Err != nil {
		// A failed transaction changes only the payer's balance.
		accounts = j.accounts
		accounts[0] = payer
		out.changed = accounts[:1]
	} else {
		for i, w := range tx.Writable {
			if w {
				out.changed = append(out.changed, accounts[i])
			}
		}
	}
	out.meta.PostBalances = balances(accounts)
	out.meta.PostTokens = j.mints.tokenBalances(accounts)
	return out
}

// check makes the checks that do not depend on accounts: number of locks, repeated
// accounts, blockhash, and whether the message has landed. The caller holds mu.
func (b *Bank) check(tx *Transaction, at *Block) *TransactionError {
	if len(tx.Keys) > maxLocks {
		return newError(TooManyAccountLocks)
	}
	if hasDuplicate(tx.Keys) {
		return newError(AccountLoadedTwice)
	}
	if !b.usable(tx.RecentBlockhash, at) {
		return newError(BlockhashNotFound)
	}
	if block, ok := b.messages[tx.hash]; ok && block.Slot <= at.Slot {
		return newError(AlreadyProcessed)
	}
	return nil
}

// usable reports whether a blockhash is valid for a transaction in the block.
func (b *Bank) usable(hash solana.Hash, at *Block) bool {
	block, ok := b.hashes[hash]
	return ok && block.Slot <= at.Slot && at.Height <= block.Height+MaxAge
}

func (b *Bank) load(keys []solana.PublicKey, slot uint64) []workAccount {
	out := make([]workAccount, len(keys))
	for i, key := range keys {
		out[i] = workAccount{key: key, Account: Account{Owner: solana.SystemProgramID}}
		if stored := b.accounts.at(key, slot); stored != nil {
			out[i].Account = *stored
		}
	}
	return out
}

// chargeFee subtracts the fee from the fee payer, a system account without data.
// Its remaining balance must be zero or rent-exempt.
func chargeFee(payer *Account, fee uint64, rent Rent) *TransactionError {
	before := *payer
	switch {
	case payer.Lamports == 0:
		return newError(AccountNotFound)
	case payer.Owner != solana.SystemProgramID || len(payer.Data) > 0:
		return newError(InvalidAccountForFee)
	case payer.Lamports < fee:
		return newError(InsufficientFundsForFee)
	}
	payer.Lamports -= fee
	if rent.underfunded(payer, &before) {
		return &TransactionError{Kind: InsufficientFundsForRent, Index: 0}
	}
	return nil
}

// checkPrograms checks that every invoked program exists and is executable, as Agave
// does when it loads accounts. A transaction that fails here lands and pays the
// fee, but none of its instructions runs.
func (j *job) checkPrograms() *TransactionError {
	if j.loadedBytes() > j.budget.LoadedData {
		return newError(MaxLoadedAccountsDataSizeExceeded)
	}
	for _, ix := range j.tx.Instructions {
		program := &j.accounts[ix.ProgramIDIndex]
		if program.Lamports == 0 {
			return newError(ProgramAccountNotFound)
		}
		if !program.Executable {
			return newError(InvalidProgramForExecution)
		}
	}
	return nil
}

// runAll runs the instructions in order, up to the first that fails. If all
// succeed, it checks that every writable account is empty or rent-exempt.
func (x *execution) runAll(tx *Transaction, before []workAccount) *TransactionError {
	for i, ix := range tx.Instructions {
		accounts := make([]instructionAccount, len(ix.Accounts))
		for j, index := range ix.Accounts {
			accounts[j] = instructionAccount{
				index: int(index), signer: tx.isSigner(int(index)), writable: tx.Writable[index],
			}
		}
		x.inner = append(x.inner, rpc.InnerInstruction{Index: uint16(i)})
		if err := x.run(tx.Keys[ix.ProgramIDIndex], accounts, ix.Data, 1); err != nil {
			return instructionFailed(i, err)
		}
	}
	for i := range x.accounts {
		if tx.Writable[i] && x.rent.underfunded(&x.accounts[i].Account, &before[i].Account) {
			return &TransactionError{Kind: InsufficientFundsForRent, Index: i}
		}
	}
	return nil
}

func balances(accounts []workAccount) []uint64 {
	out := make([]uint64, len(accounts))
	for i := range accounts {
		out[i] = accounts[i].Lamports
	}
	return out
}
