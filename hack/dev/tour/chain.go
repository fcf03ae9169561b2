package tour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// pollTimeout is the time limit of each wait for the local chain: finality takes 13 s,
	// and the machine may be busy.
	pollTimeout  = 90 * time.Second
	pollInterval = 100 * time.Millisecond
)

// chain is the client of a wallet, at commitment confirmed.
type chain struct{ *rpc.Client }

// poll calls ready until it returns true, or ends the step after pollTimeout.
func poll(ctx context.Context, what string, ready func(context.Context) bool) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !ready(ctx) {
		select {
		case <-ctx.Done():
			withContext("wait until "+what, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func (c chain) lamports(ctx context.Context, key solana.PublicKey) uint64 {
	balance, err := c.GetBalance(ctx, key, rpc.CommitmentConfirmed)
	withContext("read a balance", err)
	return balance.Value
}

// tree reads the pool's Merkle tree account and checks that it is consistent.
func (c chain) tree(ctx context.Context, pool *shieldpool.Pool) *shieldpool.TreeAccount {
	account, err := c.GetAccountInfoWithOpts(ctx, pool.MerkleTree, &rpc.GetAccountInfoOpts{Encoding: solana.EncodingBase64, Commitment: rpc.CommitmentConfirmed})
	withContext("read the tree account", err)
	check(equal("owner of the tree account", pool.Profile.ProgramID, account.Value.Owner))
	tree := must(pool.Profile.ParseTree(account.Value.Data.GetBinary()))
	check(tree.SelfCheck())
	return tree
}

// rents are what accounts cost at the chain's rate of rent, in lamports: a Transact's two
// nullifiers, a swap's state, a token account.
type rents struct{ nullifiers, swapState, tokenAccount uint64 }

func (c chain) rents(ctx context.Context) rents {
	account, err := c.GetAccountInfo(ctx, solana.SysVarRentPubkey)
	withContext("read the rent sysvar", err)
	rate := must(shieldpool.ParseRent(account.Value.Data.GetBinary()))
	return rents{
		nullifiers:   shieldpool.NewAccounts{Nullifiers: 2}.Rent(rate),
		swapState:    shieldpool.NewAccounts{SwapStates: 1}.Rent(rate),
		tokenAccount: shieldpool.NewAccounts{TokenAccounts: 1}.Rent(rate),
	}
}

// fund requests lamports from the local chain's faucet and waits until they have arrived.
func (c chain) fund(ctx context.Context, to solana.PublicKey, lamports uint64) solana.Signature {
	signature, err := c.RequestAirdrop(ctx, to, lamports, rpc.CommitmentConfirmed)
	withContext("ask for an airdrop", err)
	c.awaitConfirmed(ctx, signature)
	return signature
}

func (c chain) awaitConfirmed(ctx context.Context, signature solana.Signature) (slot uint64) {
	poll(ctx, "the transaction is confirmed", func(ctx context.Context) bool {
		statuses, err := c.GetSignatureStatuses(ctx, false, signature)
		withContext("ask for the transaction's status", err)
		status := statuses.Value[0]
		if status == nil || status.ConfirmationStatus == rpc.ConfirmationStatusProcessed {
			return false
		}
		if status.Err != nil {
			check(fmt.Errorf("transaction failed on the chain: %v", status.Err))
		}
		slot = status.Slot
		return true
	})
	return slot
}

type receipt struct {
	slot, fee uint64
	// payerChange is the change of the fee payer's balance, negative for a cost.
	payerChange int64
	tx          *solana.Transaction
}

func (c chain) receipt(ctx context.Context, signature solana.Signature) *receipt {
	highestVersion := uint64(1)
	found, err := c.GetTransaction(ctx, signature, &rpc.GetTransactionOpts{
		Encoding: solana.EncodingBase64, Commitment: rpc.CommitmentConfirmed, MaxSupportedTransactionVersion: &highestVersion,
	})
	withContext("read the transaction", err)
	if found.Meta == nil || found.Meta.Err != nil {
		check(errors.New("read the transaction: expected one that succeeded, received one that failed on the chain"))
	}
	tx, err := found.Transaction.GetTransaction()
	withContext("decode the transaction", err)
	if len(found.Meta.PreBalances) == 0 || len(found.Meta.PostBalances) == 0 {
		check(errors.New("read the transaction: the chain's answer has no balances of its accounts"))
	}
	payer := int64(found.Meta.PostBalances[0]) - int64(found.Meta.PreBalances[0]) //nolint:gosec // far below 2^63
	return &receipt{slot: found.Slot, fee: found.Meta.Fee, payerChange: payer, tx: tx}
}

// receiptsOf reads every transaction with the account, oldest first.
func (c chain) receiptsOf(ctx context.Context, account solana.PublicKey) (receipts []*receipt) {
	found, err := c.GetSignaturesForAddressWithOpts(ctx, account, &rpc.GetSignaturesForAddressOpts{Commitment: rpc.CommitmentConfirmed})
	withContext("list an account's transactions", err)
	for _, transaction := range slices.Backward(found) {
		receipts = append(receipts, c.receipt(ctx, transaction.Signature))
	}
	return receipts
}

// call returns the pool program's instruction in the transaction.
func (r *receipt) call(profile *shieldpool.Profile) *shieldpool.Call {
	for _, ix := range r.tx.Message.Instructions {
		program, err := r.tx.Message.Program(ix.ProgramIDIndex)
		withContext("decode the transaction", err)
		if program.Equals(profile.ProgramID) {
			return must(profile.ParseData(ix.Data))
		}
	}
	check(errors.New("the transaction has no instruction of the pool program"))
	return nil
}

// purpose describes the transaction of a swap.
func (r *receipt) purpose(profile *shieldpool.Profile) string {
	for _, ix := range slices.Backward(r.tx.Message.Instructions) {
		program, err := r.tx.Message.Program(ix.ProgramIDIndex)
		switch {
		case err != nil || len(ix.Data) == 0:
		case program.Equals(solana.SPLAssociatedTokenAccountProgramID):
			return "the three token accounts"
		case !program.Equals(profile.ProgramID):
		case ix.Data[0] == profile.Tags.TransactSwap:
			return "TransactSwap"
		case ix.Data[0] == profile.Tags.ExecuteSwap:
			return "ExecuteSwap"
		case ix.Data[0] == profile.Tags.CloseSwapState:
			return "CloseSwapState"
		}
	}
	return "another transaction"
}
