// Package shieldpool models the shielded pool program: the program profile, the bytes of
// public inputs, notes and instructions, the addresses, account layouts, fees and errors.
// It is pure: no clock, no network, no state. Facts that are not certain are data of the
// Profile, never code.
package shieldpool

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/gagliardetto/solana-go"
)

// DevelopmentGenesisHash is the fixed genesis hash of the local chain. The
// relay accepts the development verifying key with this genesis and no other.
var DevelopmentGenesisHash = solana.Hash(sha256.Sum256([]byte("relaypool local chain genesis v1")))

// Tags are the first bytes of the program's instructions.
type Tags struct {
	Transact, TransactSwap, Initialize, PrepareSwapSol, ExecuteSwap, CloseSwapState uint8
}

// ExtDataRule is the rule by which the proof binds the destination.
type ExtDataRule string

const (
	// ExtDataOpaque means that the formula is unknown: only the program protects the
	// destination.
	ExtDataOpaque ExtDataRule = "opaque"
	// ExtDataSHA256 is 0x00 ‖ the first 31 bytes of sha256(destination).
	ExtDataSHA256 ExtDataRule = "sha256-31"
)

// Mint is one asset of the pool: its address and its field element in the
// public inputs. No formula relates the two.
type Mint struct {
	Address solana.PublicKey
	Field   [32]byte
}

// Fees are what the pool takes from a withdrawal or swap, in lamports.
type Fees struct {
	// Base is charged on each; Numerator/Denominator of the gross amount is added, rounded
	// down.
	Base, Numerator, Denominator uint64
	// MinDeposit is the smallest deposit that the program accepts.
	MinDeposit uint64
}

// Profile is everything that may differ between deployments of the pool program. It is immutable once built and safe for concurrent use.
type Profile struct {
	Name      string
	ProgramID solana.PublicKey
	Tags      Tags
	Seeds     Seeds
	Accounts  AccountOrders
	Mints     []Mint
	Fees      Fees
	ExtData   ExtDataRule
	// RecipientMinimum is the program's own least balance of a recipient, in lamports; 0 when
	// it has none beside the network's. A recipient that would have less cannot be paid.
	RecipientMinimum uint64
	// SwapTimeout is the number of slots after its creation from which a swap state can be
	// refunded.
	SwapTimeout uint64
	// RootHistory is the number of roots that the program keeps.
	RootHistory int
	// AllowOffCurveRecipient allows recipients without a private key, such as multisig
	// vaults.
	AllowOffCurveRecipient bool
	// SignInMessages are the texts that a wallet may sign to store a viewing key.
	SignInMessages []string
	// Errors names the program's custom codes; Classes decides how the relay reacts to
	// each.
	Errors  map[uint32]string
	Classes []ClassRange
}

// DefaultSignInMessage is the text that existing wallets sign (seen on the wire; see the
// protocol).
const DefaultSignInMessage = "Cloak: Sign in\n\nSign this message to securely access your Cloak account.\nThis does NOT authorize any transaction or spend any funds."

// ShieldPoolV1 returns the profile of the public deployment.
func ShieldPoolV1() *Profile {
	return &Profile{
		Name:           "shield-pool-v1",
		ProgramID:      solana.MustPublicKeyFromBase58("c1oak6tetxYnNfvXKFkpn1d98FxtK7B68vBQLYQpWKp"),
		Tags:           Tags{Transact: 0, TransactSwap: 1, Initialize: 10, PrepareSwapSol: 11, ExecuteSwap: 12, CloseSwapState: 13},
		Seeds:          defaultSeeds(),
		Accounts:       defaultAccountOrders(),
		Mints:          []Mint{{Address: solana.WrappedSol, Field: wrappedSOLField()}},
		Fees:           Fees{Base: 5_000_000, Numerator: 3, Denominator: 1000, MinDeposit: 10_000_000},
		ExtData:        ExtDataOpaque,
		SwapTimeout:    200,
		RootHistory:    100,
		SignInMessages: []string{DefaultSignInMessage},
		Errors:         defaultErrorNames(),
		Classes:        defaultClasses(),
	}
}

// Development returns the local chain's profile: shield-pool-v1 with the
// destination bound to the proof.
func Development() *Profile {
	p := ShieldPoolV1()
	p.Name = "development"
	p.ExtData = ExtDataSHA256
	return p
}

// BuiltIn returns the built-in profile with that name.
func BuiltIn(name string) (*Profile, error) {
	for _, p := range []*Profile{ShieldPoolV1(), Development()} {
		if p.Name == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("profile %q is not built in: use shield-pool-v1 or development", name)
}

// wrappedSOLField is the field value that circom clients use for wrapped SOL,
// read from their public signals (seen on the wire).
func wrappedSOLField() [32]byte {
	var f [32]byte
	if _, err := hex.Decode(f[:], []byte("000c18307f0d313d7af546aba01b108a68640b7058f5d3a7ea0eaeda1924096a")); err != nil {
		panic("shieldpool: the wrapped SOL field constant is not hex")
	}
	return f
}

// MintByField finds the mint whose field value is f.
func (p *Profile) MintByField(f [32]byte) (Mint, bool) {
	for _, m := range p.Mints {
		if m.Field == f {
			return m, true
		}
	}
	return Mint{}, false
}

// MintByAddress finds the mint with that address.
func (p *Profile) MintByAddress(a solana.PublicKey) (Mint, bool) {
	for _, m := range p.Mints {
		if m.Address.Equals(a) {
			return m, true
		}
	}
	return Mint{}, false
}

// Fee returns what the pool keeps of a withdrawal or swap of gross lamports.
func (f Fees) Fee(gross uint64) uint64 {
	// gross/D·N + (gross mod D)·N/D is ⌊gross·N/D⌋ without overflow.
	return f.Base + gross/f.Denominator*f.Numerator + gross%f.Denominator*f.Numerator/f.Denominator
}

// Net returns what remains of gross lamports for the recipient; ok is false when the fee
// leaves nothing.
func (f Fees) Net(gross uint64) (net uint64, ok bool) {
	fee := f.Fee(gross)
	if fee >= gross {
		return 0, false
	}
	return gross - fee, true
}

// Destination is the destination of a withdrawal or swap, as the ext data hash binds it.
type Destination struct {
	// Recipient is the wallet of a withdrawal; zero for transfers and swaps.
	Recipient solana.PublicKey
	// Swap is a swap's terms; nil without one.
	Swap *SwapTerms
}

// SwapTerms are the 72 bytes that TransactSwap appends to Transact's.
type SwapTerms struct {
	OutputMint, RecipientATA solana.PublicKey
	// MinOutput is in the output mint's smallest unit.
	MinOutput uint64
}

// Bytes returns output_mint ‖ recipient_ata ‖ min_output as u64 little-endian: 72 bytes.
func (s SwapTerms) Bytes() []byte {
	b := make([]byte, 0, 72)
	b = append(b, s.OutputMint[:]...)
	b = append(b, s.RecipientATA[:]...)
	return binary.LittleEndian.AppendUint64(b, s.MinOutput)
}

// Bytes identifies the destination: the recipient's 32 bytes, a swap's 72, none for a
// transfer.
func (d Destination) Bytes() []byte {
	switch {
	case d.Swap != nil:
		return d.Swap.Bytes()
	case d.Recipient.IsZero():
		return nil
	default:
		return d.Recipient.Bytes()
	}
}

// ExtDataHash returns the hash that binds the destination under sha256-31.
func ExtDataHash(d Destination) [32]byte {
	sum := sha256.Sum256(d.Bytes())
	var h [32]byte
	copy(h[1:], sum[:31])
	return h
}

// BindsDestination reports whether the public inputs bind the destination as the profile
// requires; true if the profile has no formula. Transfers have no recipient to bind.
func (p *Profile) BindsDestination(in *PublicInputs, d Destination) bool {
	if p.ExtData != ExtDataSHA256 || in.PublicAmount >= 0 {
		return true
	}
	return in.ExtDataHash == ExtDataHash(d)
}
