package shieldpool

import (
	"encoding/binary"
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/refusal"
)

// MaxTransactionSize is the largest serialised transaction that the network accepts, in
// bytes (Solana: IPv6 MTU less headers).
const MaxTransactionSize = 1232

// Compute is the compute-budget part of a transaction. All transactions of one kind have
// the same shape, so that fees do not fingerprint clients.
type Compute struct {
	// Limit is in compute units, Price in micro-lamports a unit.
	Limit uint32
	Price uint64
}

// instructions are SetComputeUnitLimit (2) and SetComputeUnitPrice (3).
func (c Compute) instructions() []solana.Instruction {
	limit := binary.LittleEndian.AppendUint32([]byte{2}, c.Limit)
	price := binary.LittleEndian.AppendUint64([]byte{3}, c.Price)
	return []solana.Instruction{
		solana.NewInstruction(solana.ComputeBudget, nil, limit),
		solana.NewInstruction(solana.ComputeBudget, nil, price),
	}
}

// PriorityFee returns what the price adds to a transaction's fee, in lamports, rounded up.
func (c Compute) PriorityFee() uint64 {
	const microLamports = 1_000_000
	units := uint64(c.Limit)
	return units*(c.Price/microLamports) + (units*(c.Price%microLamports)+microLamports-1)/microLamports
}

// LookupTable is an address lookup table on the chain that shortens the relay's
// transactions.
type LookupTable struct {
	Address   solana.PublicKey
	Addresses solana.PublicKeySlice
}

// Constant returns the addresses that every transaction of the pool names, which are the
// content of the relay's lookup table.
func (p *Pool) Constant() solana.PublicKeySlice {
	return solana.PublicKeySlice{p.Address, p.MerkleTree, p.Treasury, solana.SystemProgramID}
}

// Transaction builds the call's unsigned transaction: a legacy one, or v0 when there is a
// lookup table.
func (p *Pool) Transaction(payer solana.PublicKey, c *Call, compute Compute, blockhash solana.Hash, table *LookupTable) (*solana.Transaction, error) {
	ix, err := p.Instruction(payer, c)
	if err != nil {
		return nil, err
	}
	opts := []solana.TransactionOption{solana.TransactionPayer(payer)}
	if table != nil {
		opts = append(opts, solana.TransactionAddressTables(map[solana.PublicKey]solana.PublicKeySlice{table.Address: table.Addresses}))
	}
	tx, err := solana.NewTransaction(append(compute.instructions(), ix), blockhash, opts...)
	if err != nil {
		return nil, fmt.Errorf("lay out transaction: %w", err)
	}
	return tx, nil
}

// Kind is a shape of transaction: all transactions of one kind differ only in the values of
// their bytes.
type Kind string

// The kinds of submission.
const (
	KindTransfer   Kind = "transfer"
	KindWithdrawal Kind = "withdrawal"
	KindSwap       Kind = "swap"
)

// Kind is the shape of the call's transaction.
func (c *Call) Kind() Kind {
	switch {
	case c.Swap != nil:
		return KindSwap
	case c.Inputs.PublicAmount < 0:
		return KindWithdrawal
	default:
		return KindTransfer
	}
}

// NoteBound returns the number of bytes of note envelope that fit a transaction of the
// kind: the transaction's limit less its size without notes, measured with the profile's
// account list. table is nil for legacy transactions.
func (p *Pool) NoteBound(k Kind, table *LookupTable) (int, error) {
	size, err := p.size(k, table)
	return MaxTransactionSize - size, err
}

// size returns the size of a signed transaction of the kind without notes, in bytes.
func (p *Pool) size(k Kind, table *LookupTable) (int, error) {
	key := func(b byte) solana.PublicKey { return solana.PublicKey{0: 0xfe, 31: b} }
	payer, in := key(1), &PublicInputs{Nullifiers: [2][32]byte{{31: 1}, {31: 2}}}
	c := &Call{Proof: make([]byte, ProofLength), Inputs: in}
	switch k {
	case KindWithdrawal:
		in.PublicAmount, c.Recipient = -1, key(2)
	case KindSwap:
		in.PublicAmount, c.Swap = -1, &SwapTerms{}
	case KindTransfer:
	default:
		return 0, fmt.Errorf("kind %q is not known: expected transfer, withdrawal or swap", k)
	}
	tx, err := p.Transaction(payer, c, Compute{}, solana.Hash{}, table)
	if err != nil {
		return 0, err
	}
	tx.Signatures = make([]solana.Signature, tx.Message.Header.NumRequiredSignatures)
	raw, err := tx.MarshalBinary()
	if err != nil {
		return 0, fmt.Errorf("encode transaction: %w", err)
	}
	return len(raw), nil
}

// CheckNotes refuses more than two notes (too_many_notes), an empty one
// (invalid_request), and notes whose envelope does not fit bound bytes
// (notes_too_large).
func CheckNotes(notes [][]byte, bound int) error {
	if len(notes) > MaxNotes {
		return refusal.New(refusal.TooManyNotes, "encrypted_notes has %d entries, expected at most %d", len(notes), MaxNotes)
	}
	for i, n := range notes {
		if len(n) == 0 {
			return refusal.New(refusal.InvalidRequest, "encrypted_notes[%d] is empty: expected at least one byte; leave the entry out instead", i)
		}
	}
	if size := NoteEnvelopeSize(notes); size > bound {
		return refusal.New(refusal.NotesTooLarge,
			"encrypted_notes take %d bytes in the transaction (6 and 2 a note included), expected at most %d: shorten the notes", size, bound)
	}
	return nil
}
