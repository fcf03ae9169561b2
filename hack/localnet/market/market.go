// Package market is the program of the local chain that swaps wrapped SOL for tokens. Each mint has
// one constant-product market with a fee. The program replaces the router program of a real chain
// and the markets behind it. An admin sets the price and the depth of a market at any time.
package market

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/gagliardetto/solana-go"
	spl "github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/token"
)

// ProgramID is the program's address on every local chain.
var ProgramID = solana.PublicKey(sha256.Sum256([]byte("relaypool local chain market program v1")))

// MaxBPS is 100 %, in basis points.
const MaxBPS = 10_000

// stateSize is the size of a market's account in bytes. Its data is State with
// little-endian integers.
var stateSize = binary.Size(State{})

// Reserves are the amounts from which a market computes its outputs. Their ratio is
// the price, their size the depth. They may differ from the balances of the market's
// vaults, but the token vault holds at least Tokens.
type Reserves struct {
	// Lamports is the reserve of wrapped SOL. Tokens is in the mint's smallest unit. Neither is 0.
	Lamports, Tokens uint64
}

// State is the data of a market's account.
type State struct {
	Mint, Admin solana.PublicKey
	Reserves
	// FeeBPS is the part of each input that the market keeps, in basis points.
	FeeBPS uint16
	// Bump is the bump seed of the market's address.
	Bump uint8
}

// ParseState decodes a market's account.
func ParseState(data []byte) (*State, error) {
	var s State
	if n, err := binary.Decode(data, binary.LittleEndian, &s); err != nil || n != len(data) {
		return nil, fmt.Errorf("market account has %d bytes, expected %d", len(data), stateSize)
	}
	return &s, nil
}

func (s *State) bytes() []byte {
	data, err := binary.Append(nil, binary.LittleEndian, s)
	if err != nil {
		panic(err) // cannot happen: all fields have a fixed size
	}
	return data
}

// Output is the number of tokens that an input of lamports buys, rounded down. If in
// is the input minus the fee, the output is s.Tokens · in / (s.Lamports + in).
func (s *State) Output(lamports uint64) uint64 {
	in := Scale(lamports, MaxBPS-uint64(min(s.FeeBPS, MaxBPS)), MaxBPS)
	sum, overflow := bits.Add64(s.Lamports, in, 0)
	if overflow != 0 || sum == 0 {
		return 0
	}
	return Scale(s.Tokens, in, sum)
}

// Scale returns ⌊x · numerator / denominator⌋, for 0 ≤ numerator ≤ denominator > 0.
func Scale(x, numerator, denominator uint64) uint64 {
	high, low := bits.Mul64(x, numerator)
	quotient, _ := bits.Div64(high, low, denominator)
	return quotient
}

// Market is the addresses of one mint's market.
type Market struct {
	// Mint is the mint of the tokens for sale. Address is the account with the State.
	// VaultSOL and VaultTokens are the associated token accounts of Address.
	Mint, Address, VaultSOL, VaultTokens solana.PublicKey
	bump                                 uint8
}

// For derives the addresses of a mint's market.
func For(mint solana.PublicKey) (*Market, error) {
	m := &Market{Mint: mint}
	var err error
	if m.Address, m.bump, err = solana.FindProgramAddress(seeds(mint), ProgramID); err != nil {
		return nil, fmt.Errorf("derive market address: %w", err)
	}
	if m.VaultSOL, _, err = solana.FindAssociatedTokenAddress(m.Address, solana.WrappedSol); err != nil {
		return nil, fmt.Errorf("derive market's vault of wrapped SOL: %w", err)
	}
	if m.VaultTokens, _, err = solana.FindAssociatedTokenAddress(m.Address, mint); err != nil {
		return nil, fmt.Errorf("derive market's vault of tokens: %w", err)
	}
	return m, nil
}

func seeds(mint solana.PublicKey) [][]byte { return [][]byte{[]byte("market"), mint[:]} }

// Genesis returns a market's accounts for genesis, vaults included. The caller adds the mint. stock
// is the balance of the token vault; reserves.Tokens must not exceed it.
func (m *Market) Genesis(admin solana.PublicKey, reserves Reserves, feeBPS uint16, stock uint64) map[solana.PublicKey]bank.Account {
	state := State{Mint: m.Mint, Admin: admin, Reserves: reserves, FeeBPS: feeBPS, Bump: m.bump}
	reserve := bank.RentExemption(bank.TokenAccountSize)
	return map[solana.PublicKey]bank.Account{
		m.Address: {Lamports: bank.RentExemption(uint64(stateSize)), Data: state.bytes(), Owner: ProgramID}, //nolint:gosec // a size is not negative
		m.VaultSOL: token.Account(spl.Account{
			Mint: solana.WrappedSol, Owner: m.Address, State: spl.Initialized, IsNative: &reserve,
		}),
		m.VaultTokens: token.Account(spl.Account{Mint: m.Mint, Owner: m.Address, Amount: stock, State: spl.Initialized}),
	}
}

// SetReserves makes the instruction by which the admin sets the reserves. The token
// vault must hold at least reserves.Tokens.
func (m *Market) SetReserves(admin solana.PublicKey, reserves Reserves) solana.Instruction {
	return solana.NewInstruction(ProgramID, solana.AccountMetaSlice{
		solana.Meta(admin).SIGNER(), solana.Meta(m.Address).WRITE(), solana.Meta(m.VaultTokens),
	}, reserves.append(tagSetReserves))
}

func (r Reserves) append(tag byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64([]byte{tag}, r.Lamports), r.Tokens)
}

// Trade is a user's swap.
type Trade struct {
	// User is the signer. WSOL and Tokens are the user's token accounts of wrapped
	// SOL and of the market's mint.
	User, WSOL, Tokens solana.PublicKey
	// AmountIn is in lamports. The swap fails with Custom(6001) when its output
	// is below MinOut, which is in the mint's smallest unit.
	AmountIn, MinOut uint64
	// KeepBPS is the part of the output, in basis points, that the market keeps. If it
	// is above 0, the swap ignores MinOut. It serves to test a client's checks.
	KeepBPS uint16
}

// Swap makes the instruction of a trade. The program ignores further accounts.
func (m *Market) Swap(t Trade) *solana.GenericInstruction {
	data := binary.LittleEndian.AppendUint64([]byte{tagSwap}, t.AmountIn)
	data = binary.LittleEndian.AppendUint64(data, t.MinOut)
	if t.KeepBPS > 0 {
		data[0] = tagSwapShort
		data = binary.LittleEndian.AppendUint16(data, t.KeepBPS)
	}
	return solana.NewInstruction(ProgramID, solana.AccountMetaSlice{
		solana.Meta(m.Address).WRITE(), solana.Meta(t.User).SIGNER(), solana.Meta(t.WSOL).WRITE(), solana.Meta(t.Tokens).WRITE(),
		solana.Meta(m.VaultSOL).WRITE(), solana.Meta(m.VaultTokens).WRITE(), solana.Meta(solana.TokenProgramID),
	}, data)
}
