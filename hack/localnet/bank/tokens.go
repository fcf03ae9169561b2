package bank

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	bin "github.com/gagliardetto/binary"
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"
	"github.com/gagliardetto/solana-go/rpc"
)

// Sizes of the accounts of SPL Token in bytes.
const (
	TokenMintSize    = 82
	TokenAccountSize = 165
)

// nativeDecimals are the decimals of the native mint, whose smallest unit is a lamport.
const nativeDecimals = 9

// ParseToken reads a token account, initialised or not. It returns nil for other
// data.
func ParseToken(data []byte) *token.Account {
	var account token.Account
	if len(data) != TokenAccountSize || account.UnmarshalWithDecoder(bin.NewBinDecoder(data)) != nil {
		return nil
	}
	return &account
}

// ParseMint reads a mint, initialised or not. It returns nil for other data.
func ParseMint(data []byte) *token.Mint {
	var mint token.Mint
	if len(data) != TokenMintSize || mint.UnmarshalWithDecoder(bin.NewBinDecoder(data)) != nil {
		return nil
	}
	return &mint
}

func isTokenProgram(key solana.PublicKey) bool {
	return key == solana.TokenProgramID || key == solana.Token2022ProgramID
}

// mintDecimals maps each mint to its decimals. They are read before a transaction runs, because the
// transaction need not name the mints of its token accounts. The map is nil for a
// transaction without a token program, which lists no token balances.
type mintDecimals map[solana.PublicKey]uint8

// mintsOf reads the mints of a transaction's token accounts as of a block. The
// caller holds mu.
func (b *Bank) mintsOf(tx *Transaction, accounts []workAccount, at *Block) mintDecimals {
	if !slices.ContainsFunc(tx.Keys, isTokenProgram) {
		return nil
	}
	found := mintDecimals{solana.WrappedSol: nativeDecimals}
	for i := range accounts {
		account := tokenAccount(&accounts[i].Account)
		if account == nil {
			continue
		}
		if _, known := found[account.Mint]; known {
			continue
		}
		if decimals, ok := decimalsOf(b.accounts.at(account.Mint, at.Slot)); ok {
			found[account.Mint] = decimals
		}
	}
	return found
}

// tokenBalances lists the balances of a transaction's token accounts.
func (m mintDecimals) tokenBalances(accounts []workAccount) []rpc.TokenBalance {
	if m == nil {
		return []rpc.TokenBalance{}
	}
	out := []rpc.TokenBalance{}
	for i := range accounts {
		account := tokenAccount(&accounts[i].Account)
		if account == nil {
			continue
		}
		decimals, known := m[account.Mint]
		if !known { // the transaction may have created this mint
			at := slices.IndexFunc(accounts, func(a workAccount) bool { return a.key == account.Mint })
			if at < 0 {
				continue
			}
			if decimals, known = decimalsOf(&accounts[at].Account); !known {
				continue
			}
		}
		out = append(out, rpc.TokenBalance{
			AccountIndex: uint16(i), Mint: account.Mint, Owner: &account.Owner, ProgramId: &accounts[i].Owner,
			UiTokenAmount: tokenAmount(account.Amount, decimals),
		})
	}
	return out
}

// tokenAmount is an amount of tokens in all the forms of a node's answer. UiAmount
// is null for an amount of 0, as in Agave's transaction history.
func tokenAmount(amount uint64, decimals uint8) *rpc.UiTokenAmount {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	exact := new(big.Rat).SetFrac(new(big.Int).SetUint64(amount), unit)
	out := &rpc.UiTokenAmount{Amount: strconv.FormatUint(amount, 10), Decimals: decimals, UiAmountString: exact.FloatString(int(decimals))}
	if float, _ := exact.Float64(); amount > 0 {
		out.UiAmount = &float
	}
	if strings.Contains(out.UiAmountString, ".") {
		out.UiAmountString = strings.TrimSuffix(strings.TrimRight(out.UiAmountString, "0"), ".")
	}
	return out
}

// tokenAccount reads an initialised token account. It returns nil for any other
// account.
func tokenAccount(stored *Account) *token.Account {
	if len(stored.Data) != TokenAccountSize || !isTokenProgram(stored.Owner) {
		return nil
	}
	account := ParseToken(stored.Data)
	if account == nil || account.State == token.Uninitialized {
		return nil
	}
	return account
}

func decimalsOf(stored *Account) (decimals uint8, ok bool) {
	if stored == nil || len(stored.Data) != TokenMintSize || !isTokenProgram(stored.Owner) {
		return 0, false
	}
	mint := ParseMint(stored.Data)
	if mint == nil || !mint.IsInitialized {
		return 0, false
	}
	return mint.Decimals, true
}
