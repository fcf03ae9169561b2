package arena

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"

	"github.com/relaypool/relaypool/hack/drill/account"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// eyes read the chain itself, past every fault.
type eyes struct {
	client *rpc.Client
	pool   *shieldpool.Pool
	payers map[solana.PublicKey]bool
}

// Agave's code for a slot without a block.
const codeSlotSkipped = -32007

// signatureFee is the network's fixed fee for a signature, in lamports.
const signatureFee = 5000

// transactions reads the finalized chain up to a slot, block by block.
func (y *eyes) transactions(ctx context.Context, last uint64) (out []account.Transaction, err error) {
	version, rewards := uint64(0), false
	for slot := uint64(1); slot <= last; slot++ {
		block, err := y.client.GetBlockWithOpts(ctx, slot, &rpc.GetBlockOpts{
			Encoding: solana.EncodingBase64, TransactionDetails: rpc.TransactionDetailsFull, Rewards: &rewards,
			Commitment: rpc.CommitmentFinalized, MaxSupportedTransactionVersion: &version,
		})
		var refused *jsonrpc.RPCError
		if errors.As(err, &refused) && refused.Code == codeSlotSkipped {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read block %d: %w", slot, err)
		}
		for i := range block.Transactions {
			tx, err := y.transaction(slot, &block.Transactions[i])
			if err != nil {
				return nil, fmt.Errorf("read transaction %d of block %d: %w", i, slot, err)
			}
			if len(tx.Calls) > 0 || y.payers[tx.Payer] {
				out = append(out, *tx)
			}
		}
	}
	return out, nil
}

func (y *eyes) transaction(slot uint64, with *rpc.TransactionWithMeta) (*account.Transaction, error) {
	decoded, err := with.GetTransaction()
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if with.Meta == nil {
		return nil, errors.New("it has no meta data")
	}
	keys := decoded.Message.AccountKeys
	tx := &account.Transaction{
		Signature: decoded.Signatures[0], Slot: slot, Failed: with.Meta.Err != nil, Payer: keys[0],
		Fee: with.Meta.Fee, SignatureFee: signatureFee * uint64(len(decoded.Signatures)), Changes: make(map[solana.PublicKey]int64),
	}
	for i := range with.Meta.PreBalances {
		if change := int64(with.Meta.PostBalances[i]) - int64(with.Meta.PreBalances[i]); change != 0 { //nolint:gosec // far below 2^63 lamports exist
			tx.Changes[keys[i]] = change
		}
	}
	recipient := y.recipientAt()
	for _, ix := range decoded.Message.Instructions {
		if keys[ix.ProgramIDIndex] != y.pool.Profile.ProgramID || len(ix.Data) == 0 || ix.Data[0] != y.pool.Profile.Tags.Transact {
			continue
		}
		call, err := y.pool.Profile.ParseData(ix.Data)
		if err != nil {
			continue // what the program refuses too
		}
		if recipient >= len(ix.Accounts) {
			continue
		}
		tx.Calls = append(tx.Calls, account.PoolCall{Inputs: *call.Inputs, Recipient: keys[ix.Accounts[recipient]]})
	}
	return tx, nil
}

// recipientAt is the recipient's place among Transact's accounts.
func (y *eyes) recipientAt() int {
	for i, role := range y.pool.Profile.Accounts.Transact {
		if role.Role == shieldpool.RoleRecipient {
			return i
		}
	}
	return len(y.pool.Profile.Accounts.Transact)
}

// balance reads an account's lamports; 0 for one that does not exist.
func (y *eyes) balance(ctx context.Context, key solana.PublicKey, level rpc.CommitmentType) (uint64, error) {
	answer, err := y.client.GetBalance(ctx, key, level)
	if err != nil {
		return 0, fmt.Errorf("read a balance: %w", err)
	}
	return answer.Value, nil
}

// ring reads the root ring at a commitment level.
func (y *eyes) ring(ctx context.Context, level rpc.CommitmentType) (*account.Ring, error) {
	at := time.Now()
	answer, err := y.client.GetAccountInfoWithOpts(ctx, y.pool.MerkleTree, &rpc.GetAccountInfoOpts{Encoding: solana.EncodingBase64, Commitment: level})
	if err != nil {
		return nil, fmt.Errorf("read the tree account: %w", err)
	}
	tree, err := y.pool.Profile.ParseTree(answer.Value.Data.GetBinary())
	if err != nil {
		return nil, err
	}
	ring := &account.Ring{At: at, Slot: answer.Context.Slot, Roots: make(map[[32]byte]struct{}, len(tree.History))}
	for _, root := range tree.History {
		ring.Roots[root] = struct{}{}
	}
	return ring, nil
}
