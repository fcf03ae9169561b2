// Package poolprogram is the shielded pool program of the local chain: the
// rules of the protocol as a program of package bank, with real proof verification.
// It uses the same kind of profile as the relay.
//
// It has the instructions Initialize, Transact, TransactSwap, PrepareSwapSol,
// ExecuteSwap and CloseSwapState. Any other tag fails with InvalidInstructionData.
package poolprogram

import (
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// The program's custom errors. When the protocol has no code for a refusal, the
// program uses the nearest permanent code and logs the broken rule.
const (
	errRootNotFound            = bank.CustomError(shieldpool.CodeRootNotFound)
	errProofInvalid            = bank.CustomError(shieldpool.CodeProofInvalid)
	errDoubleSpend             = bank.CustomError(shieldpool.CodeDoubleSpend)
	errConservation            = bank.CustomError(shieldpool.CodeConservation)
	errInvalidAmount           = bank.CustomError(shieldpool.CodeInvalidAmount)
	errInvalidInstructionData  = bank.CustomError(shieldpool.CodeInvalidInstructionData)
	errProofVerificationFailed = bank.CustomError(shieldpool.CodeProofVerificationFailed)
	errMerkleTreeFull          = bank.CustomError(shieldpool.CodeMerkleTreeFull)
	errSwapNotReady            = bank.CustomError(shieldpool.CodeSwapNotReady)
)

// Codes with which ExecuteSwap refuses a router's swap. The protocol does not define
// them, so they come from its family of permanent refusals.
const (
	// CodeOutputBelowMinimum means that recipient_ata did not grow by the user's minimum.
	CodeOutputBelowMinimum uint32 = 0x1038
	// CodeInputNotConsumed means that the router did not take all of the swap's wrapped SOL.
	CodeInputNotConsumed uint32 = 0x1039

	errOutputBelowMinimum = bank.CustomError(CodeOutputBelowMinimum)
	errInputNotConsumed   = bank.CustomError(CodeInputNotConsumed)
)

// Compute units of the parts of an instruction. With them Transact costs 150 k to
// 186 k and TransactSwap 175 k to 188 k, as measured with an independent program.
// In both programs, the spread comes from the search for program addresses.
const (
	entryUnits   = 2_000
	addressUnits = 1_500
	proofUnits   = 105_000
	appendUnits  = 18_000
	swapUnits    = 17_000
)

// field is the size of a field element in bytes.
const field = 32

// program is the pool program under one profile. All of the chain's state is in
// accounts, none in program.
type program struct {
	profile  *shieldpool.Profile
	pools    []pool
	verifier *verifier
}

type pool struct {
	mint                    shieldpool.Mint
	address, tree, treasury programAddress
}

// New makes the program for a profile and the verifying key of the circuit. The key
// must have nine public signals. The error names what is missing or invalid.
func New(profile *shieldpool.Profile, key *groth16.Key) (bank.Program, error) {
	if profile == nil || key == nil {
		return bank.Program{}, errors.New("pool program: want a profile and a verifying key")
	}
	if key.NPublic() != shieldpool.SignalCount {
		return bank.Program{}, fmt.Errorf("pool program: the verifying key has %d public signals, want %d",
			key.NPublic(), shieldpool.SignalCount)
	}
	if err := shieldpool.ValidateProfile(profile); err != nil {
		return bank.Program{}, fmt.Errorf("pool program: %w", err)
	}
	p := &program{profile: profile, verifier: newVerifier(verifyWith(key))}
	for _, mint := range profile.Mints {
		pool, err := p.newPool(mint)
		if err != nil {
			return bank.Program{}, err
		}
		p.pools = append(p.pools, pool)
	}
	return bank.Program{
		ID:      profile.ProgramID,
		Account: bank.ProgramAccount(),
		Process: p.process,
	}, nil
}

func (p *program) process(v *bank.Invocation) error {
	if err := v.Consume(entryUnits); err != nil {
		return err
	}
	err := p.dispatch(v)
	var custom bank.CustomError
	if errors.As(err, &custom) {
		// An invoked program's code has no name in the profile.
		if name, ok := p.profile.Errors[uint32(custom)]; ok {
			v.Log("Program log: Error: %s", name)
		}
	}
	return err
}

func (p *program) dispatch(v *bank.Invocation) error {
	if len(v.Data) == 0 {
		return errInvalidInstructionData
	}
	tags, accounts := &p.profile.Tags, &p.profile.Accounts
	for _, instruction := range []struct {
		tag  uint8
		name string
		run  func(*bank.Invocation) error
	}{
		{tags.Transact, "Transact", func(v *bank.Invocation) error { return p.transact(v, accounts.Transact) }},
		{tags.TransactSwap, "TransactSwap", func(v *bank.Invocation) error { return p.transact(v, accounts.TransactSwap) }},
		{tags.PrepareSwapSol, "PrepareSwapSol", p.prepareSwapSol}, {tags.ExecuteSwap, "ExecuteSwap", p.executeSwap},
		{tags.CloseSwapState, "CloseSwapState", p.closeSwapState}, {tags.Initialize, "Initialize", p.initialize},
	} {
		if instruction.tag == v.Data[0] {
			v.Log("Program log: Instruction: " + instruction.name)
			return instruction.run(v)
		}
	}
	return errInvalidInstructionData
}

// roles returns the instruction's accounts from position first on, by role. order is the
// profile's account list. roles checks that each account has the list's signer and writable
// flags.
func roles(v *bank.Invocation, first int, order []shieldpool.AccountRole) (map[shieldpool.Role]*bank.AccountRef, error) {
	out := make(map[shieldpool.Role]*bank.AccountRef, len(order))
	for i, role := range order {
		account, err := v.Account(first + i)
		if err != nil {
			return nil, err
		}
		if role.Signer && !account.IsSigner() {
			return nil, bank.ErrMissingRequiredSignature
		}
		if role.Writable && !account.IsWritable() {
			return nil, v.Refuse(bank.ErrInvalidArgument, "an account must be writable")
		}
		out[role.Role] = account
	}
	if system := out[shieldpool.RoleSystemProgram]; system != nil && system.Key() != solana.SystemProgramID {
		return nil, bank.ErrIncorrectProgramID
	}
	if token := out[shieldpool.RoleTokenProgram]; token != nil && token.Key() != solana.TokenProgramID {
		return nil, bank.ErrIncorrectProgramID
	}
	return out, nil
}
