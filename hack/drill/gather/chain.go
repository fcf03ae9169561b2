package gather

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"

	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Chain reads the chain through an endpoint that has no faults.
type Chain struct {
	// Client asks an endpoint that has the whole history.
	Client *rpc.Client
	Pool   *shieldpool.Pool
	// Payers are the relays' fee payers: every transaction that they pay for is read.
	Payers map[solana.PublicKey]bool
	// Heights are the heights of the blocks that Transactions has read.
	Heights verify.Heights
	// wrappedSOL are the accounts of wrapped SOL in the transactions read.
	wrappedSOL map[solana.PublicKey]bool
}

// NewChain returns a reader that uses the client. Fill Payers before Transactions is called.
func NewChain(client *rpc.Client, pool *shieldpool.Pool) *Chain {
	return &Chain{Client: client, Pool: pool, Payers: make(map[solana.PublicKey]bool), Heights: make(verify.Heights), wrappedSOL: make(map[solana.PublicKey]bool)}
}

// Agave's code for a slot without a block.
const codeSlotSkipped = -32007

// signatureFee is the network's fixed fee for a signature, in lamports.
const signatureFee = 5000

// Transactions reads the finalized chain up to a slot, block by block. It returns the
// transactions that call the pool or are paid by a fee payer.
func (c *Chain) Transactions(ctx context.Context, last uint64) (out []verify.Transaction, err error) {
	version, rewards := uint64(1), false
	for slot := uint64(1); slot <= last; slot++ {
		block, err := c.Client.GetBlockWithOpts(ctx, slot, &rpc.GetBlockOpts{
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
		if block.BlockHeight != nil {
			c.Heights[block.Blockhash] = *block.BlockHeight
		}
		for i := range block.Transactions {
			tx, err := c.transaction(slot, &block.Transactions[i])
			if err != nil {
				return nil, fmt.Errorf("read transaction %d of block %d: %w", i, slot, err)
			}
			if len(tx.Calls)+len(tx.Ends) > 0 || c.Payers[tx.Payer] {
				out = append(out, *tx)
			}
		}
	}
	return out, nil
}

func (c *Chain) transaction(slot uint64, raw *rpc.TransactionWithMeta) (*verify.Transaction, error) {
	decoded, err := raw.GetTransaction()
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if raw.Meta == nil {
		return nil, errors.New("no metadata")
	}
	// Accounts of lookup tables come after the transaction's own: writable, then read-only.
	keys := slices.Concat(decoded.Message.AccountKeys, raw.Meta.LoadedAddresses.Writable, raw.Meta.LoadedAddresses.ReadOnly)
	tx := &verify.Transaction{
		Signature: decoded.Signatures[0], Slot: slot, Failed: raw.Meta.Err != nil, Payer: keys[0],
		Fee: raw.Meta.Fee, SignatureFee: signatureFee * uint64(len(decoded.Signatures)), Changes: make(map[solana.PublicKey]int64),
	}
	for i := range raw.Meta.PreBalances {
		if change := int64(raw.Meta.PostBalances[i]) - int64(raw.Meta.PreBalances[i]); change != 0 { //nolint:gosec // far below 2^63 lamports exist
			tx.Changes[keys[i]] = change
		}
	}
	if tx.Tokens, err = c.tokens(keys, raw.Meta); err != nil {
		return nil, err
	}
	for _, ix := range decoded.Message.Instructions {
		if keys[ix.ProgramIDIndex] != c.Pool.Profile.ProgramID || len(ix.Data) == 0 {
			continue
		}
		accounts := make([]solana.PublicKey, len(ix.Accounts))
		for i, at := range ix.Accounts {
			accounts[i] = keys[at]
		}
		c.instruction(tx, accounts, ix.Data)
	}
	return tx, nil
}

// instruction records a call of the pool program. It leaves out calls that do not parse:
// the program refuses them.
func (c *Chain) instruction(tx *verify.Transaction, accounts []solana.PublicKey, data []byte) {
	profile := c.Pool.Profile
	orders, tags := &profile.Accounts, &profile.Tags
	switch tag := data[0]; tag {
	case tags.Transact, tags.TransactSwap:
		call, err := profile.ParseData(data)
		if err != nil {
			return
		}
		recipient := accountOf(orders.Transact, shieldpool.RoleRecipient, accounts)
		if call.Swap != nil {
			recipient = accountOf(orders.TransactSwap, shieldpool.RoleSwapState, accounts)
		}
		tx.Calls = append(tx.Calls, verify.PoolCall{Inputs: *call.Inputs, Recipient: recipient, Swap: call.Swap})
	case tags.ExecuteSwap:
		tx.Ends = append(tx.Ends, verify.SwapEnd{
			How: shieldpool.Executed, State: accountOf(orders.ExecuteSwap, shieldpool.RoleSwapState, accounts),
			WSOL:      accountOf(orders.ExecuteSwap, shieldpool.RoleSwapWSOL, accounts),
			Output:    accountOf(orders.ExecuteSwap, shieldpool.RoleSwapOutput, accounts),
			Recipient: accountOf(orders.ExecuteSwap, shieldpool.RoleRecipientATA, accounts),
		})
	case tags.CloseSwapState:
		tx.Ends = append(tx.Ends, verify.SwapEnd{
			How: shieldpool.Refunded, State: accountOf(orders.CloseSwapState, shieldpool.RoleSwapState, accounts),
			WSOL:      accountOf(slices.Concat(orders.CloseSwapState, orders.CloseWrapped), shieldpool.RoleSwapWSOL, accounts),
			Recipient: accountOf(orders.CloseSwapState, shieldpool.RoleRecipient, accounts),
		})
	}
}

// accountOf returns the account at a role's position, or zero when the list is too short.
func accountOf(order []shieldpool.AccountRole, role shieldpool.Role, accounts []solana.PublicKey) solana.PublicKey {
	at := slices.IndexFunc(order, func(r shieldpool.AccountRole) bool { return r.Role == role })
	if at < 0 || at >= len(accounts) {
		return solana.PublicKey{}
	}
	return accounts[at]
}

// tokens reads a transaction's changes of token accounts, and records the accounts of wrapped SOL.
func (c *Chain) tokens(keys []solana.PublicKey, meta *rpc.TransactionMeta) (map[solana.PublicKey]int64, error) {
	changes := make(map[solana.PublicKey]int64)
	for sign, balances := range map[int64][]rpc.TokenBalance{-1: meta.PreTokenBalances, 1: meta.PostTokenBalances} {
		for _, b := range balances {
			amount, err := strconv.ParseInt(b.UiTokenAmount.Amount, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("a token balance is not a number: %w", err)
			}
			key := keys[b.AccountIndex]
			changes[key] += sign * amount
			if b.Mint == solana.WrappedSol {
				c.wrappedSOL[key] = true
			}
		}
	}
	maps.DeleteFunc(changes, func(_ solana.PublicKey, change int64) bool { return change == 0 })
	return changes, nil
}

// Balance reads an account's finalized lamports. An account that does not exist has 0.
func (c *Chain) Balance(ctx context.Context, key solana.PublicKey) (uint64, error) {
	answer, err := c.Client.GetBalance(ctx, key, rpc.CommitmentFinalized)
	if err != nil {
		return 0, fmt.Errorf("read a balance: %w", err)
	}
	return answer.Value, nil
}

// Finality reads the finalized slot and height.
func (c *Chain) Finality(ctx context.Context) (*verify.Finality, error) {
	at := time.Now()
	info, err := c.Client.GetEpochInfo(ctx, rpc.CommitmentFinalized)
	if err != nil {
		return nil, fmt.Errorf("read the finalized height: %w", err)
	}
	return &verify.Finality{At: at, Slot: info.AbsoluteSlot, Height: info.BlockHeight}, nil
}

// RootHistory reads the root history at a commitment level.
func (c *Chain) RootHistory(ctx context.Context, level rpc.CommitmentType) (*verify.RootHistory, error) {
	at := time.Now()
	tree, slot, err := c.tree(ctx, level)
	if err != nil {
		return nil, err
	}
	history := &verify.RootHistory{At: at, Slot: slot, Roots: make(map[[32]byte]struct{}, len(tree.History))}
	for _, root := range tree.History {
		history.Roots[root] = struct{}{}
	}
	return history, nil
}

// Root reads the tree's newest root at a commitment level.
func (c *Chain) Root(ctx context.Context, level rpc.CommitmentType) ([32]byte, error) {
	tree, _, err := c.tree(ctx, level)
	if err != nil {
		return [32]byte{}, err
	}
	return tree.Root, nil
}

func (c *Chain) tree(ctx context.Context, level rpc.CommitmentType) (*shieldpool.TreeAccount, uint64, error) {
	answer, err := c.Client.GetAccountInfoWithOpts(ctx, c.Pool.MerkleTree, &rpc.GetAccountInfoOpts{Encoding: solana.EncodingBase64, Commitment: level})
	if err != nil {
		return nil, 0, fmt.Errorf("read the tree account: %w", err)
	}
	tree, err := c.Pool.Profile.ParseTree(answer.Value.Data.GetBinary())
	return tree, answer.Context.Slot, err
}
