package txmgr_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// modelFee is the cost of a signature, in lamports.
	modelFee = 5000
)

// modelTipAccount receives the tips of the model's lane.
var modelTipAccount = solana.PublicKey{0: 0x71}

// modelTx is a transaction as the chain reads it from its bytes.
type modelTx struct {
	format    shieldpool.Format
	signature solana.Signature
	payer     solana.PublicKey
	blockhash solana.Hash
	call      *shieldpool.Call
	// limit is in compute units; fee and the tip for a lane are in lamports. accounts counts the
	// nullifiers, of which each gets an account.
	limit, fee, tip, accounts uint64
	// foreign: a stranger's transaction. It needs no blockhash, and the model does not charge its payer.
	foreign bool
}

// parseModelTx parses the bytes of a relay's transaction. The unsigned
// transaction of a simulation has a signature of zeros.
func parseModelTx(pool *shieldpool.Pool, raw []byte) (*modelTx, error) {
	parsed, err := solana.TransactionFromBytes(raw)
	if err != nil {
		return nil, err
	}
	m := parsed.Message
	format := shieldpool.FormatOf(raw)
	if len(parsed.Signatures) != 1 || len(m.Instructions)-format.PoolInstruction() < 1 || len(m.Instructions)-format.PoolInstruction() > 2 {
		return nil, fmt.Errorf("transaction has %d signatures and %d instructions", len(parsed.Signatures), len(m.Instructions))
	}
	if len(raw) > format.MaxSize() {
		return nil, errors.New("transaction is larger than the network carries")
	}
	tx := &modelTx{format: format, signature: parsed.Signatures[0], payer: m.AccountKeys[0], blockhash: m.RecentBlockhash}
	if tx.signature != (solana.Signature{}) {
		if err := parsed.VerifySignatures(); err != nil {
			return nil, err
		}
	}
	ix := m.Instructions[format.PoolInstruction()]
	if m.AccountKeys[ix.ProgramIDIndex] != pool.Profile.ProgramID {
		return nil, errors.New("the pool's instruction is not at its place")
	}
	if tx.call, err = pool.Profile.ParseData(ix.Data); err != nil {
		return nil, err
	}
	if tx.call.Inputs.PublicAmount < 0 {
		at := slices.IndexFunc(pool.Profile.Accounts.Transact, func(r shieldpool.AccountRole) bool { return r.Role == shieldpool.RoleRecipient })
		tx.call.Recipient = m.AccountKeys[ix.Accounts[at]]
	}
	if format == shieldpool.V1 {
		tx.limit, tx.fee = uint64(*m.TransactionConfig.ComputeUnitLimit), modelFee+*m.TransactionConfig.PriorityFee
	} else {
		compute := shieldpool.Compute{
			Limit: binary.LittleEndian.Uint32(m.Instructions[0].Data[1:]), Price: binary.LittleEndian.Uint64(m.Instructions[1].Data[1:]),
		}
		tx.limit, tx.fee = uint64(compute.Limit), modelFee+compute.PriorityFee()
	}
	for i := range tx.call.Inputs.Nullifiers {
		if tx.call.Inputs.HasNullifier(i) {
			tx.accounts++
		}
	}
	for _, tip := range m.Instructions[format.PoolInstruction()+1:] {
		if m.AccountKeys[tip.Accounts[1]] != modelTipAccount {
			return nil, errors.New("the tip is not for the lane's account")
		}
		tx.tip = binary.LittleEndian.Uint64(tip.Data[4:])
	}
	return tx, nil
}

// units is the transaction's consumption, which varies with the bumps of its addresses.
func (tx *modelTx) units() uint64 {
	return 160_000 + uint64(tx.call.Inputs.Nullifiers[0][31])%12*1000
}

// rentOf is the cost of the transaction's accounts at the chain's rate of rent.
func (c *modelChain) rentOf(tx *modelTx) uint64 { return tx.accounts * c.rent.Minimum(0) }

// fits reports whether a transaction is valid in the block after parent.
func (c *modelChain) fits(tx *modelTx, parent *modelBlock) bool {
	if tx.foreign {
		return true
	}
	made := c.hashes[tx.blockhash]
	return made != nil && made.isOn(parent) && parent.height+1 <= made.height+c.blockhashLife &&
		c.landing(tx.signature, parent) == nil && parent.state.lamports[tx.payer] >= tx.fee
}

// run executes a transaction of a block, and returns the state after it.
func (c *modelChain) run(s *modelState, l *modelLanding) (*modelState, *shieldpool.TransactionError) {
	tx, next := l.tx, s.clone()
	if !tx.foreign {
		next.lamports[tx.payer] -= tx.fee
	}
	if err := c.refuses(s, tx); err != nil {
		return next, err
	}
	if failsOnChain(tx.call) && !tx.foreign {
		return next, c.programError(shieldpool.CodeSwapNotReady) // a temporary error: the relay may sign anew
	}
	if !tx.foreign {
		next.lamports[tx.payer] -= c.rentOf(tx) + tx.tip
	}
	for i, n := range tx.call.Inputs.Nullifiers {
		if tx.call.Inputs.HasNullifier(i) {
			next.spent[n] = l
		}
	}
	for _, leaf := range tx.call.Inputs.Commitments {
		next.placed[leaf] = next.leaves
		next.leaves++
		next.roots = append(next.roots, modelRoot(next.roots[len(next.roots)-1], leaf))
	}
	next.roots = next.roots[max(0, len(next.roots)-c.rootHistory):]
	return next, nil
}

// refuses returns the error with which a transaction whose fee is paid fails; nil when it succeeds.
func (c *modelChain) refuses(s *modelState, tx *modelTx) *shieldpool.TransactionError {
	spent := slices.ContainsFunc(tx.call.Inputs.Nullifiers[:], func(n [32]byte) bool { return s.spent[n] != nil })
	known := slices.Contains(s.roots, tx.call.Inputs.Root)
	switch {
	case tx.foreign && !spent:
		return nil
	case tx.foreign:
		return c.programError(shieldpool.CodeDoubleSpend)
	case tx.limit < tx.units():
		return &shieldpool.TransactionError{Kind: "InstructionError", Instruction: c.format.PoolInstruction(), Detail: "ComputationalBudgetExceeded"}
	case !known && (c.rootFirst || !spent):
		return c.programError(shieldpool.CodeRootNotFound)
	case spent:
		return c.programError(shieldpool.CodeDoubleSpend)
	case hasNegatedA(tx.call):
		return c.programError(shieldpool.CodeProofInvalid)
	case s.lamports[tx.payer] < tx.fee+c.rentOf(tx):
		return c.programError(1) // the system program's error, which the pool's program passes through
	case s.lamports[tx.payer] < tx.fee+c.rentOf(tx)+tx.tip:
		return &shieldpool.TransactionError{Kind: "InstructionError", Instruction: c.format.PoolInstruction() + 1, Detail: "Custom", Custom: 1}
	default:
		return nil
	}
}

// programError is an error of the pool's program, or of a program that it calls, in a
// transaction of the model's format.
func (m *modelRules) programError(code uint32) *shieldpool.TransactionError {
	return &shieldpool.TransactionError{Kind: "InstructionError", Instruction: m.format.PoolInstruction(), Detail: "Custom", Custom: code}
}

// tree is the tree account as a node reads it.
func (c *modelChain) tree(s *modelState) *shieldpool.TreeAccount {
	t := &shieldpool.TreeAccount{NextIndex: s.leaves, Root: s.roots[len(s.roots)-1], History: make([][32]byte, c.rootHistory), RootIndex: uint64(len(s.roots) - 1)}
	copy(t.History, s.roots)
	return t
}
