package rpc

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/relaypool/relaypool/relay/onchain"
)

func TestAccountCostsCountsOnlyCreatedAccounts(t *testing.T) {
	t.Parallel()
	payer, other, account, owner := solana.PublicKey{1}, solana.PublicKey{2}, solana.PublicKey{3}, solana.PublicKey{4}
	plain := func(ix solana.Instruction) onchain.Instruction {
		data, err := ix.Data()
		if err != nil {
			t.Fatal(err)
		}
		out := onchain.Instruction{ProgramID: ix.ProgramID(), Data: data}
		for _, a := range ix.Accounts() {
			out.Accounts = append(out.Accounts, a.PublicKey)
		}
		return out
	}
	create := func(from solana.PublicKey, lamports uint64) onchain.Instruction {
		return plain(system.NewCreateAccountInstruction(lamports, 0, owner, from, account).Build())
	}
	transfer := func(lamports uint64, to solana.PublicKey) onchain.Instruction {
		return plain(system.NewTransferInstruction(lamports, payer, to).Build())
	}
	allocate := plain(system.NewAllocateInstruction(8, account).Build())
	seeded := plain(system.NewCreateAccountWithSeedInstruction(payer, "a seed", 7, 12, owner, payer, account, payer).Build())
	prefunded := onchain.Instruction{ProgramID: solana.SystemProgramID, Accounts: []solana.PublicKey{account, payer}, Data: append(binary.LittleEndian.AppendUint64([]byte{13, 0, 0, 0}, 9), make([]byte, 40)...)}
	tests := map[string]struct {
		instructions []onchain.Instruction
		failed       bool
		want         uint64
		wantSizes    []uint64
	}{
		"a created account":                          {[]onchain.Instruction{create(payer, 5)}, false, 5, []uint64{0}},
		"an account with a seed":                     {[]onchain.Instruction{seeded}, false, 7, []uint64{12}},
		"an account that may have had lamports":      {[]onchain.Instruction{prefunded}, false, 9, []uint64{0}},
		"an account that is topped up and allocated": {[]onchain.Instruction{transfer(3, account), allocate}, false, 3, []uint64{8}},
		"an account that another pays for":           {[]onchain.Instruction{create(other, 5)}, false, 0, nil},
		"a transfer to an account that existed":      {[]onchain.Instruction{transfer(3, other)}, false, 0, nil},
		"a tip beside a created account":             {[]onchain.Instruction{create(payer, 5), transfer(1000, other)}, false, 5, []uint64{0}},
		"a transaction that failed created nothing":  {[]onchain.Instruction{create(payer, 5)}, true, 0, nil},
		"a call of another program":                  {[]onchain.Instruction{{ProgramID: other, Accounts: []solana.PublicKey{payer, account}, Data: create(payer, 5).Data}}, false, 0, nil},
		"malformed calls of the system program":      {[]onchain.Instruction{{ProgramID: solana.SystemProgramID, Data: []byte{0, 0, 0}}, {ProgramID: solana.SystemProgramID, Data: []byte{0, 0, 0, 0, 1}}, {ProgramID: solana.SystemProgramID, Accounts: []solana.PublicKey{payer, account}, Data: append([]byte{3, 0, 0, 0}, make([]byte, 40)...)}}, false, 0, nil},
	}
	for name, test := range tests {
		tx := &transaction{}
		tx.Failed, tx.Instructions = test.failed, test.instructions
		if got, sizes := tx.accountCosts(payer); got != test.want || !slices.Equal(sizes, test.wantSizes) {
			t.Errorf("%s: %d lamports for accounts of %d bytes, want %d and %d", name, got, sizes, test.want, test.wantSizes)
		}
	}
}
