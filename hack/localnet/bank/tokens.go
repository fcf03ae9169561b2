package bank

import (
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/token/layout"
)

// TokenBalance is what a token account of a transaction holds.
type TokenBalance struct {
	// Index is the account's index in the transaction's keys.
	Index int
	Mint  solana.PublicKey
	Owner solana.PublicKey
	// Amount is in the smallest unit; Decimals are the mint's.
	Amount   uint64
	Decimals uint8
	// Program is the token program that owns the account.
	Program solana.PublicKey
}

func isTokenProgram(key solana.PublicKey) bool {
	return key == solana.TokenProgramID || key == solana.Token2022ProgramID
}

// mints are the decimals of mints that a transaction may not name itself; nil
// for a transaction without a token program, which has no token balances.
type mints map[solana.PublicKey]uint8

// mintsOf finds the mints of a transaction's token accounts as of a block. The
// caller holds mu.
func (b *Bank) mintsOf(tx *Transaction, accounts []workAccount, at *Block) mints {
	if !slices.ContainsFunc(tx.Keys, isTokenProgram) {
		return nil
	}
	found := mints{solana.WrappedSol: layout.NativeDecimals}
	for i := range accounts {
		account := tokenAccount(&accounts[i].record)
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

// tokenBalances lists what the token accounts of a transaction hold.
func (m mints) tokenBalances(accounts []workAccount) []TokenBalance {
	if m == nil {
		return nil
	}
	var out []TokenBalance
	for i := range accounts {
		account := tokenAccount(&accounts[i].record)
		if account == nil {
			continue
		}
		decimals, known := m[account.Mint]
		if !known { // of a mint that the transaction has made
			at := slices.IndexFunc(accounts, func(a workAccount) bool { return a.key == account.Mint })
			if at < 0 {
				continue
			}
			if decimals, known = decimalsOf(&accounts[at].record); !known {
				continue
			}
		}
		out = append(out, TokenBalance{
			Index: i, Mint: account.Mint, Owner: account.Owner, Amount: account.Amount,
			Decimals: decimals, Program: accounts[i].owner,
		})
	}
	return out
}

// tokenAccount reads an initialised token account, or gives nil for any other.
func tokenAccount(r *record) *layout.Account {
	if r.data.length != layout.AccountSize || !isTokenProgram(r.owner) {
		return nil
	}
	account, err := layout.ParseAccount(r.data.bytes())
	if err != nil || account.State == layout.Uninitialized {
		return nil
	}
	return account
}

func decimalsOf(r *record) (decimals uint8, ok bool) {
	if r == nil || r.data.length != layout.MintSize || !isTokenProgram(r.owner) {
		return 0, false
	}
	mint, err := layout.ParseMint(r.data.bytes())
	if err != nil || !mint.Initialized {
		return 0, false
	}
	return mint.Decimals, true
}

// Decimals gives the decimals of a mint at the level's block, or false when
// there is no such mint.
func (v View) Decimals(mint solana.PublicKey) (decimals uint8, ok bool) {
	return decimalsOf(v.bank.accounts.at(mint, v.block.Slot))
}

// OwnedToken is a token account with its address.
type OwnedToken struct {
	Key     solana.PublicKey
	Account *Account
	Token   *layout.Account
}

// TokensOf lists the token accounts of an owner at the level's block, by their
// addresses. It looks at every account of the chain.
func (v View) TokensOf(owner solana.PublicKey) []OwnedToken {
	var out []OwnedToken
	for key := range v.bank.accounts {
		stored := v.bank.accounts.at(key, v.block.Slot)
		if stored == nil {
			continue
		}
		if token := tokenAccount(stored); token != nil && token.Owner == owner {
			out = append(out, OwnedToken{key, stored.account(), token})
		}
	}
	slices.SortFunc(out, func(a, b OwnedToken) int { return slices.Compare(a.Key[:], b.Key[:]) })
	return out
}
