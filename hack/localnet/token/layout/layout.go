// Package layout reads and writes the two accounts of SPL Token as the token
// program stores them: a mint in 82 bytes and a token account in 165, integers
// little-endian, an optional value behind a tag of four bytes.
package layout

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"
)

// Sizes of the accounts in bytes.
const (
	MintSize    = 82
	AccountSize = 165
)

// NativeDecimals are those of the native mint, whose token is a lamport.
const NativeDecimals = 9

// State is what a token account can be.
type State byte

// The states of a token account.
const (
	Uninitialized State = iota
	Initialized
	Frozen
)

// String gives the state's name as RPC nodes write it.
func (s State) String() string {
	return [...]string{"uninitialized", "initialized", "frozen"}[s]
}

// Mint is a kind of token.
type Mint struct {
	// Authority may make new tokens; nil when the supply is fixed.
	Authority *solana.PublicKey
	// Supply is in the smallest unit.
	Supply      uint64
	Decimals    uint8
	Initialized bool
	// FreezeAuthority may freeze accounts; nil when nobody may.
	FreezeAuthority *solana.PublicKey
}

// Account is a token account.
type Account struct {
	Mint  solana.PublicKey
	Owner solana.PublicKey
	// Amount is in the mint's smallest unit.
	Amount uint64
	// Delegate may move up to Delegated; nil when there is none.
	Delegate *solana.PublicKey
	State    State
	// Native is the rent exemption, in lamports, that an account of the native
	// mint holds beside its amount; nil for every other mint.
	Native         *uint64
	Delegated      uint64
	CloseAuthority *solana.PublicKey
}

// Where the fields are.
const (
	mintAuthority       = 0
	mintSupply          = 36
	mintDecimals        = 44
	mintInitialized     = 45
	mintFreezeAuthority = 46

	accountMint           = 0
	accountOwner          = 32
	accountAmount         = 64
	accountDelegate       = 72
	accountState          = 108
	accountNative         = 109
	accountDelegated      = 121
	accountCloseAuthority = 129

	tagSize = 4
)

var errTag = errors.New("the tag of an optional value is neither 0 nor 1")

// ParseMint reads a mint, which need not be initialised. The error says what
// does not fit.
func ParseMint(data []byte) (*Mint, error) {
	if len(data) != MintSize {
		return nil, fmt.Errorf("mint: got %d bytes, want %d", len(data), MintSize)
	}
	m := &Mint{
		Supply:      binary.LittleEndian.Uint64(data[mintSupply:]),
		Decimals:    data[mintDecimals],
		Initialized: data[mintInitialized] == 1,
	}
	if data[mintInitialized] > 1 {
		return nil, fmt.Errorf("mint: initialised is %d, want 0 or 1", data[mintInitialized])
	}
	var err error
	if m.Authority, err = optionalKey(data[mintAuthority:]); err != nil {
		return nil, fmt.Errorf("mint authority: %w", err)
	}
	if m.FreezeAuthority, err = optionalKey(data[mintFreezeAuthority:]); err != nil {
		return nil, fmt.Errorf("mint freeze authority: %w", err)
	}
	return m, nil
}

// Bytes writes the mint.
func (m *Mint) Bytes() []byte {
	data := make([]byte, MintSize)
	putKey(data[mintAuthority:], m.Authority)
	binary.LittleEndian.PutUint64(data[mintSupply:], m.Supply)
	data[mintDecimals] = m.Decimals
	if m.Initialized {
		data[mintInitialized] = 1
	}
	putKey(data[mintFreezeAuthority:], m.FreezeAuthority)
	return data
}

// ParseAccount reads a token account, which need not be initialised. The error
// says what does not fit.
func ParseAccount(data []byte) (*Account, error) {
	if len(data) != AccountSize {
		return nil, fmt.Errorf("token account: got %d bytes, want %d", len(data), AccountSize)
	}
	a := &Account{
		Mint:      solana.PublicKeyFromBytes(data[accountMint : accountMint+solana.PublicKeyLength]),
		Owner:     solana.PublicKeyFromBytes(data[accountOwner : accountOwner+solana.PublicKeyLength]),
		Amount:    binary.LittleEndian.Uint64(data[accountAmount:]),
		State:     State(data[accountState]),
		Delegated: binary.LittleEndian.Uint64(data[accountDelegated:]),
	}
	if a.State > Frozen {
		return nil, fmt.Errorf("token account: state is %d, want 0 to %d", a.State, Frozen)
	}
	var err error
	if a.Delegate, err = optionalKey(data[accountDelegate:]); err != nil {
		return nil, fmt.Errorf("token account delegate: %w", err)
	}
	if a.CloseAuthority, err = optionalKey(data[accountCloseAuthority:]); err != nil {
		return nil, fmt.Errorf("token account close authority: %w", err)
	}
	some, err := tag(data[accountNative:])
	if err != nil {
		return nil, fmt.Errorf("token account native reserve: %w", err)
	}
	if some {
		reserve := binary.LittleEndian.Uint64(data[accountNative+tagSize:])
		a.Native = &reserve
	}
	return a, nil
}

// Bytes writes the token account.
func (a *Account) Bytes() []byte {
	data := make([]byte, AccountSize)
	copy(data[accountMint:], a.Mint[:])
	copy(data[accountOwner:], a.Owner[:])
	binary.LittleEndian.PutUint64(data[accountAmount:], a.Amount)
	putKey(data[accountDelegate:], a.Delegate)
	data[accountState] = byte(a.State)
	if a.Native != nil {
		data[accountNative] = 1
		binary.LittleEndian.PutUint64(data[accountNative+tagSize:], *a.Native)
	}
	binary.LittleEndian.PutUint64(data[accountDelegated:], a.Delegated)
	putKey(data[accountCloseAuthority:], a.CloseAuthority)
	return data
}

func tag(data []byte) (some bool, err error) {
	switch binary.LittleEndian.Uint32(data) {
	case 0:
		return false, nil
	case 1:
		return true, nil
	default:
		return false, errTag
	}
}

func optionalKey(data []byte) (*solana.PublicKey, error) {
	some, err := tag(data)
	if err != nil || !some {
		return nil, err
	}
	key := solana.PublicKeyFromBytes(data[tagSize : tagSize+solana.PublicKeyLength])
	return &key, nil
}

func putKey(data []byte, key *solana.PublicKey) {
	if key != nil {
		data[0] = 1
		copy(data[tagSize:], key[:])
	}
}
