package shieldpool

import (
	"fmt"

	"github.com/gagliardetto/solana-go"
)

// Transaction builds the call's unsigned transaction. If compute has the format V1, it builds a
// V1 transaction and ignores the lookup table. Otherwise it builds v0 with a lookup table and
// legacy without.
func (p *Pool) Transaction(payer solana.PublicKey, c *Call, compute Compute, blockhash solana.Hash, table *LookupTable) (*solana.Transaction, error) {
	ix, err := p.Instruction(payer, c)
	if err != nil {
		return nil, err
	}
	if compute.Format == V1 {
		return compute.v1(payer, blockhash, ix)
	}
	opts := []solana.TransactionOption{solana.TransactionPayer(payer)}
	if table != nil {
		opts = append(opts, solana.TransactionAddressTables(map[solana.PublicKey]solana.PublicKeySlice{table.Address: table.Addresses}))
	}
	tx, err := solana.NewTransaction(compute.withTip(payer, append(compute.Instructions(), ix)), blockhash, opts...)
	if err != nil {
		return nil, fmt.Errorf("lay out transaction: %w", err)
	}
	return tx, nil
}

// Versioned makes an unsigned transaction of the instructions. If compute has the format V1, it
// makes a V1 transaction and ignores tables. Otherwise it makes a v0 transaction, which starts
// with the two compute-budget instructions and refers to the addresses in tables.
func Versioned(payer solana.PublicKey, compute Compute, blockhash solana.Hash, tables []LookupTable, instructions ...solana.Instruction) (*solana.Transaction, error) {
	if compute.Format == V1 {
		return compute.v1(payer, blockhash, instructions...)
	}
	lookup := map[solana.PublicKey]solana.PublicKeySlice{}
	for _, t := range tables {
		lookup[t.Address] = t.Addresses
	}
	tx, err := solana.NewTransaction(compute.withTip(payer, append(compute.Instructions(), instructions...)), blockhash, solana.TransactionPayer(payer), solana.TransactionAddressTables(lookup))
	if err != nil {
		return nil, fmt.Errorf("lay out transaction: %w", err)
	}
	if _, err := tx.Message.SetVersion(solana.MessageVersionV0); err != nil {
		return nil, fmt.Errorf("lay out transaction: %w", err)
	}
	return tx, nil
}

// v1 makes an unsigned transaction of V1.
func (c Compute) v1(payer solana.PublicKey, blockhash solana.Hash, instructions ...solana.Instruction) (*solana.Transaction, error) {
	tx, err := solana.NewTransaction(c.withTip(payer, instructions), blockhash, solana.TransactionPayer(payer), solana.TransactionV1Config(c.config()))
	if err != nil {
		return nil, fmt.Errorf("lay out transaction: %w", err)
	}
	return tx, nil
}
