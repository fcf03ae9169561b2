// Package shieldpool models the shielded pool program: the program profile, the bytes of
// public inputs, notes and instructions, the addresses, account layouts, fees and errors.
// It is pure: no clock, no network, no state. Facts that are not certain are data of the
// Profile, never code.
package shieldpool

import (
	"crypto/sha256"
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

// Mint is one asset of the pool: its address and its field element in the
// public inputs. No formula relates the two.
type Mint struct {
	Address solana.PublicKey
	Field   [32]byte
}

// Profile is everything that may differ between deployments of the pool program. It is immutable
// once built and safe for concurrent use.
type Profile struct {
	Name      string
	ProgramID solana.PublicKey
	Tags      Tags
	Seeds     Seeds
	Accounts  AccountOrders
	Mints     []Mint
	Fees      Fees
	ExtData   ExtDataRule
	// RecipientMinimum is the lowest balance after the payment, in lamports, with which the
	// program accepts a recipient; 0 if it requires no more than the network's rent-exempt
	// minimum.
	RecipientMinimum uint64
	// SwapTimeout is the number of slots from the creation of a swap state to the first slot in
	// which the swap can be refunded.
	SwapTimeout uint64
	// RootHistory is the number of roots that the program keeps.
	RootHistory int
	// AllowOffCurveRecipient allows recipients without a private key, such as multisig
	// vaults.
	AllowOffCurveRecipient bool
	// RefusesV1 excludes transactions of V1. It is set for a program that cannot run in them, for
	// example because it counts the instructions before its own.
	RefusesV1 bool
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

// Development returns the local chain's profile. It differs from shield-pool-v1 in that the proof
// binds the destination.
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
