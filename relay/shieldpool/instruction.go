package shieldpool

import (
	"encoding/binary"
	"fmt"

	"github.com/gagliardetto/solana-go"
)

const (
	// TransactLength is the size of Transact's data without notes: tag, proof, public inputs.
	TransactLength = 1 + ProofLength + PublicInputsLength
	// TransactSwapLength is the size of TransactSwap's data without notes.
	TransactSwapLength = TransactLength + swapTermsLength

	swapTermsLength = 72
)

// Call is one Transact or TransactSwap, without its accounts.
type Call struct {
	Proof  []byte
	Inputs *PublicInputs
	Notes  [][]byte
	Destination
}

// Data encodes the call's instruction data.
func (p *Profile) Data(c *Call) ([]byte, error) {
	if err := CheckProofLength(c.Proof); err != nil {
		return nil, err
	}
	envelope, err := EncodeNotes(c.Notes)
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, TransactSwapLength+len(envelope))
	tag := p.Tags.Transact
	if c.Swap != nil {
		tag = p.Tags.TransactSwap
	}
	data = append(data, tag)
	data = append(data, c.Proof...)
	data = append(data, c.Inputs.Bytes()...)
	if c.Swap != nil {
		data = append(data, c.Swap.Bytes()...)
	}
	return append(data, envelope...), nil
}

// ParseData decodes the data of a Transact or TransactSwap. It is the inverse of Data,
// except for the recipient, which is an account and not data.
func (p *Profile) ParseData(data []byte) (*Call, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("instruction data is empty, expected a tag")
	}
	c, size := new(Call), TransactLength
	switch data[0] {
	case p.Tags.Transact:
	case p.Tags.TransactSwap:
		size = TransactSwapLength
	default:
		return nil, fmt.Errorf("instruction tag is %d, expected Transact %d or TransactSwap %d", data[0], p.Tags.Transact, p.Tags.TransactSwap)
	}
	if len(data) < size {
		return nil, fmt.Errorf("instruction data has %d bytes, expected at least %d", len(data), size)
	}
	c.Proof = data[1 : 1+ProofLength : 1+ProofLength]
	var err error
	if c.Inputs, err = ParsePublicInputs(data[1+ProofLength : TransactLength]); err != nil {
		return nil, err
	}
	if size == TransactSwapLength {
		c.Swap = parseSwapTerms(data[TransactLength:TransactSwapLength])
	}
	if c.Notes, err = ParseNotes(data[size:]); err != nil {
		return nil, err
	}
	return c, nil
}

func parseSwapTerms(b []byte) *SwapTerms {
	return &SwapTerms{
		OutputMint:   solana.PublicKeyFromBytes(b[:32]),
		RecipientATA: solana.PublicKeyFromBytes(b[32:64]),
		MinOutput:    binary.LittleEndian.Uint64(b[64:]),
	}
}

// Instruction makes the call's instruction, paid and signed by payer.
func (p *Pool) Instruction(payer solana.PublicKey, c *Call) (solana.Instruction, error) {
	data, err := p.Profile.Data(c)
	if err != nil {
		return nil, err
	}
	a, err := p.addresses(payer, c.Inputs, c.Destination)
	if err != nil {
		return nil, err
	}
	order := p.Profile.Accounts.Transact
	if c.Swap != nil {
		order = p.Profile.Accounts.TransactSwap
	}
	accounts, err := metas(order, a)
	if err != nil {
		return nil, err
	}
	return solana.NewInstruction(p.Profile.ProgramID, accounts, data), nil
}

// Initialize makes the instruction that creates the pool's accounts; admin pays
// and becomes the authority.
func (p *Pool) Initialize(admin solana.PublicKey) (solana.Instruction, error) {
	accounts, err := metas(p.Profile.Accounts.Initialize, Addresses{
		RolePayer: admin, RolePool: p.Address, RoleMerkleTree: p.MerkleTree,
		RoleTreasury: p.Treasury, RoleSystemProgram: solana.SystemProgramID,
	})
	if err != nil {
		return nil, err
	}
	return solana.NewInstruction(p.Profile.ProgramID, accounts, []byte{p.Profile.Tags.Initialize}), nil
}
