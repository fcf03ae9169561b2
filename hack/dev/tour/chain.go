package tour

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// patience is what anything on the local chain gets to happen: finality
	// takes 13 s, and the machine may be busy with something else.
	patience     = 90 * time.Second
	pollInterval = 100 * time.Millisecond
)

// chain reads and sends as any wallet does, at commitment confirmed.
type chain struct{ *rpc.Client }

// poll asks until ready, an error, or the end of patience.
func poll(ctx context.Context, what string, ask func(context.Context) (ready bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		ready, err := ask(ctx)
		if ready || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func (c chain) lamports(ctx context.Context, key solana.PublicKey) (uint64, error) {
	balance, err := c.GetBalance(ctx, key, rpc.CommitmentConfirmed)
	if err != nil {
		return 0, fmt.Errorf("read a balance: %w", err)
	}
	return balance.Value, nil
}

// tree reads the pool's Merkle tree account and checks it against itself.
func (c chain) tree(ctx context.Context, pool *shieldpool.Pool) (*shieldpool.TreeAccount, error) {
	account, err := c.GetAccountInfoWithOpts(ctx, pool.MerkleTree, &rpc.GetAccountInfoOpts{Encoding: solana.EncodingBase64, Commitment: rpc.CommitmentConfirmed})
	if err != nil {
		return nil, fmt.Errorf("read the tree account: %w", err)
	}
	if err := equal("owner of the tree account", pool.Profile.ProgramID, account.Value.Owner); err != nil {
		return nil, err
	}
	tree, err := pool.Profile.ParseTree(account.Value.Data.GetBinary())
	if err != nil {
		return nil, err
	}
	if err := tree.SelfCheck(); err != nil {
		return nil, err
	}
	return tree, nil
}

// fund asks the local chain's faucet and waits until the lamports are there.
func (c chain) fund(ctx context.Context, to solana.PublicKey, lamports uint64) (solana.Signature, error) {
	signature, err := c.RequestAirdrop(ctx, to, lamports, rpc.CommitmentConfirmed)
	if err != nil {
		return signature, fmt.Errorf("ask for an airdrop: %w", err)
	}
	_, err = c.confirmed(ctx, signature)
	return signature, err
}

// confirmed waits for a transaction and returns its slot.
func (c chain) confirmed(ctx context.Context, signature solana.Signature) (slot uint64, err error) {
	err = poll(ctx, "the transaction is confirmed", func(ctx context.Context) (bool, error) {
		statuses, err := c.GetSignatureStatuses(ctx, false, signature)
		if err != nil {
			return false, fmt.Errorf("ask for the transaction's status: %w", err)
		}
		status := statuses.Value[0]
		if status == nil || status.ConfirmationStatus == rpc.ConfirmationStatusProcessed {
			return false, nil
		}
		if status.Err != nil {
			return false, fmt.Errorf("transaction failed on the chain: %v", status.Err)
		}
		slot = status.Slot
		return true, nil
	})
	return slot, err
}

// receipt is what the chain says of a transaction that landed.
type receipt struct {
	slot, fee uint64
	// payer is what it gave to its fee payer, negative for what it took.
	payer int64
	tx    *solana.Transaction
}

func (c chain) receipt(ctx context.Context, signature solana.Signature) (*receipt, error) {
	newest := uint64(0)
	found, err := c.GetTransaction(ctx, signature, &rpc.GetTransactionOpts{
		Encoding: solana.EncodingBase64, Commitment: rpc.CommitmentConfirmed, MaxSupportedTransactionVersion: &newest,
	})
	if err != nil {
		return nil, fmt.Errorf("read the transaction: %w", err)
	}
	if found.Meta == nil || found.Meta.Err != nil {
		return nil, errors.New("read the transaction: the chain says that it failed, expected success")
	}
	tx, err := found.Transaction.GetTransaction()
	if err != nil {
		return nil, fmt.Errorf("decode the transaction: %w", err)
	}
	if len(found.Meta.PreBalances) == 0 || len(found.Meta.PostBalances) == 0 {
		return nil, errors.New("read the transaction: the chain gives no balances of its accounts")
	}
	payer := int64(found.Meta.PostBalances[0]) - int64(found.Meta.PreBalances[0]) //nolint:gosec // far below
	return &receipt{slot: found.Slot, fee: found.Meta.Fee, payer: payer, tx: tx}, nil
}

// call finds the pool program's instruction in the transaction.
func (r *receipt) call(profile *shieldpool.Profile) (*shieldpool.Call, error) {
	for _, ix := range r.tx.Message.Instructions {
		program, err := r.tx.Message.Program(ix.ProgramIDIndex)
		if err != nil {
			return nil, fmt.Errorf("decode the transaction: %w", err)
		}
		if program.Equals(profile.ProgramID) {
			return profile.ParseData(ix.Data)
		}
	}
	return nil, errors.New("the transaction has no instruction of the pool program")
}
