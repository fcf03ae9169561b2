package bank_test

import (
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

var rentMinimum = bank.RentExemption(0)

// meta builds the account meta of a named account.
func meta(name string, signer, writable bool) *solana.AccountMeta {
	return solana.NewAccountMeta(address(name), writable, signer)
}

func create(name string, lamports, space uint64, owner solana.PublicKey) solana.Instruction {
	return system.NewCreateAccountInstruction(lamports, space, owner, address("wallet"), address(name)).Build()
}

func TestTransactionRules(t *testing.T) {
	t.Parallel()
	owner := address("some program")
	systemInstruction := func(data []byte, accounts ...*solana.AccountMeta) solana.Instruction {
		return solana.NewInstruction(solana.SystemProgramID, accounts, data)
	}
	tests := map[string]struct {
		signers      []string // the wallet when empty; the first pays
		instructions []solana.Instruction
		wantErr      string
		wantLanded   bool
		wantFee      uint64
		wantLog      string
	}{
		"a transfer costs 5000 lamports": {
			instructions: []solana.Instruction{transferFrom("wallet", "to", rentMinimum)},
			wantErr:      `null`, wantLanded: true, wantFee: 5000, wantLog: "Program 11111111111111111111111111111111 success",
		},
		"a second signature costs 5000 more": {
			signers:      []string{"wallet", "new"},
			instructions: []solana.Instruction{create("new", rentMinimum, 0, owner)},
			wantErr:      `null`, wantLanded: true, wantFee: 10_000,
		},
		"the priority fee is charged for the limit and rounded up": {
			instructions: []solana.Instruction{unitLimit(1001), unitPrice(1500), transferFrom("wallet", "to", rentMinimum)},
			wantErr:      `null`, wantLanded: true, wantFee: 5000 + 2,
		},
		"the default limit is 200000 for each instruction except compute-budget ones": {
			instructions: []solana.Instruction{unitPrice(10), transferFrom("wallet", "to", rentMinimum), transferFrom("wallet", "to", 1)},
			wantErr:      `null`, wantLanded: true, wantFee: 5000 + 4,
		},
		"the limit is never above 1400000": {
			instructions: []solana.Instruction{unitLimit(5_000_000), unitPrice(1_000_000), transferFrom("wallet", "to", rentMinimum)},
			wantErr:      `null`, wantLanded: true, wantFee: 5000 + 1_400_000,
		},
		"a limit below the units used fails and pays": {
			instructions: []solana.Instruction{unitLimit(200), transferFrom("wallet", "to", rentMinimum)},
			wantErr:      `{"InstructionError":[1,"ComputationalBudgetExceeded"]}`, wantLanded: true, wantFee: 5000,
			wantLog: "Program 11111111111111111111111111111111 failed: Computational budget exceeded",
		},
		"a repeated compute-budget instruction never lands": {
			instructions: []solana.Instruction{unitLimit(1000), unitLimit(1000)},
			wantErr:      `{"DuplicateInstruction":1}`,
		},
		"an unknown compute-budget instruction never lands": {
			instructions: []solana.Instruction{solana.NewInstruction(solana.ComputeBudget, nil, []byte{9, 0, 0, 0, 0})},
			wantErr:      `{"InstructionError":[0,"InvalidInstructionData"]}`,
		},
		"a truncated compute-unit price never lands": {
			instructions: []solana.Instruction{solana.NewInstruction(solana.ComputeBudget, nil, []byte{3, 0, 0, 0, 0})},
			wantErr:      `{"InstructionError":[0,"InvalidInstructionData"]}`,
		},
		"a fee payer that does not exist never lands": {
			signers:      []string{"nobody"},
			instructions: []solana.Instruction{transferFrom("nobody", "to", rentMinimum)},
			wantErr:      `"AccountNotFound"`,
		},
		"a fee payer without the fee never lands": {
			signers:      []string{"poor"},
			instructions: []solana.Instruction{unitLimit(1_000_000), unitPrice(1_000_000), transferFrom("poor", "to", 1)},
			wantErr:      `"InsufficientFundsForFee"`,
		},
		"a fee payer left below rent by the fee never lands": {
			signers:      []string{"poor"},
			instructions: []solana.Instruction{transferFrom("poor", "to", 1)},
			wantErr:      `{"InsufficientFundsForRent":{"account_index":0}}`,
		},
		"a fee payer that a program owns never lands": {
			signers:      []string{"owned"},
			instructions: []solana.Instruction{transferFrom("owned", "to", 1)},
			wantErr:      `"InvalidAccountForFee"`,
		},
		"an account left below rent fails with its index and pays": {
			instructions: []solana.Instruction{transferFrom("wallet", "to", rentMinimum-1)},
			wantErr:      `{"InsufficientFundsForRent":{"account_index":1}}`, wantLanded: true, wantFee: 5000,
		},
		"a wallet left below rent fails with its index and pays": {
			instructions: []solana.Instruction{transferFrom("wallet", "to", walletStart-fee-1)},
			wantErr:      `{"InsufficientFundsForRent":{"account_index":0}}`, wantLanded: true, wantFee: 5000,
		},
		"a wallet may be emptied": {
			instructions: []solana.Instruction{transferFrom("wallet", "to", walletStart-fee)},
			wantErr:      `null`, wantLanded: true, wantFee: 5000,
		},
		"a transfer above the balance fails with the system program's code 1": {
			instructions: []solana.Instruction{transferFrom("wallet", "to", walletStart)},
			wantErr:      `{"InstructionError":[0,{"Custom":1}]}`, wantLanded: true, wantFee: 5000,
			wantLog: "Transfer: insufficient lamports 999995000, need 1000000000",
		},
		"a program that does not exist pays the fee": {
			instructions: []solana.Instruction{solana.NewInstruction(address("no program"), nil, nil)},
			wantErr:      `"ProgramAccountNotFound"`, wantLanded: true, wantFee: 5000,
		},
		"an account that is no program pays the fee": {
			instructions: []solana.Instruction{solana.NewInstruction(address("poor"), nil, nil)},
			wantErr:      `"InvalidProgramForExecution"`, wantLanded: true, wantFee: 5000,
		},
		"a transfer from an account that did not sign": {
			instructions: []solana.Instruction{systemInstruction([]byte{2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
				meta("poor", false, true), meta("to", false, true))},
			wantErr: `{"InstructionError":[0,"MissingRequiredSignature"]}`, wantLanded: true, wantFee: 5000,
			wantLog: "Transfer: `from` account " + address("poor").String() + " must sign",
		},
		"a transfer from an account that a program owns": {
			signers:      []string{"wallet", "owned"},
			instructions: []solana.Instruction{transferFrom("owned", "to", 1)},
			wantErr:      `{"InstructionError":[0,"ExternalAccountLamportSpend"]}`, wantLanded: true, wantFee: 10_000,
		},
		"a transfer from an account with data": {
			signers:      []string{"wallet", "data"},
			instructions: []solana.Instruction{transferFrom("data", "to", 1)},
			wantErr:      `{"InstructionError":[0,"InvalidArgument"]}`, wantLanded: true, wantFee: 10_000,
		},
		"a transfer to an account passed as read-only": {
			instructions: []solana.Instruction{systemInstruction([]byte{2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
				meta("wallet", true, true), meta("poor", false, false))},
			wantErr: `{"InstructionError":[0,"ReadonlyLamportChange"]}`, wantLanded: true, wantFee: 5000,
		},
		"a transfer without its second account": {
			instructions: []solana.Instruction{systemInstruction([]byte{2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, meta("wallet", true, true))},
			wantErr:      `{"InstructionError":[0,"NotEnoughAccountKeys"]}`, wantLanded: true, wantFee: 5000,
		},
		"a truncated transfer": {
			instructions: []solana.Instruction{systemInstruction([]byte{2, 0, 0, 0, 1}, meta("wallet", true, true))},
			wantErr:      `{"InstructionError":[0,"InvalidInstructionData"]}`, wantLanded: true, wantFee: 5000,
		},
		"a system instruction that this chain does not know": {
			instructions: []solana.Instruction{systemInstruction([]byte{4, 0, 0, 0}, meta("wallet", true, true))},
			wantErr:      `{"InstructionError":[0,"InvalidInstructionData"]}`, wantLanded: true, wantFee: 5000,
		},
		"an account created at an address in use": {
			signers:      []string{"wallet", "poor"},
			instructions: []solana.Instruction{create("poor", rentMinimum, 0, owner)},
			wantErr:      `{"InstructionError":[0,{"Custom":0}]}`, wantLanded: true, wantFee: 10_000,
			wantLog: "Create Account: account Address { address: " + address("poor").String() + ", base: None } already in use",
		},
		"an account created above the maximum size": {
			signers:      []string{"wallet", "new"},
			instructions: []solana.Instruction{create("new", rentMinimum, bank.MaxAccountData+1, owner)},
			wantErr:      `{"InstructionError":[0,{"Custom":3}]}`, wantLanded: true, wantFee: 10_000,
		},
		"an account created with data but the rent of an empty account": {
			signers:      []string{"wallet", "new"},
			instructions: []solana.Instruction{create("new", rentMinimum, 1, owner)},
			wantErr:      `{"InsufficientFundsForRent":{"account_index":1}}`, wantLanded: true, wantFee: 10_000,
		},
		"an allocation without the account's signature": {
			instructions: []solana.Instruction{systemInstruction([]byte{8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, meta("poor", false, true))},
			wantErr:      `{"InstructionError":[0,"MissingRequiredSignature"]}`, wantLanded: true, wantFee: 5000,
		},
		"an assignment without the account's signature": {
			instructions: []solana.Instruction{systemInstruction(append([]byte{1, 0, 0, 0}, owner[:]...), meta("poor", false, true))},
			wantErr:      `{"InstructionError":[0,"MissingRequiredSignature"]}`, wantLanded: true, wantFee: 5000,
		},
		"an assignment of an account that a program owns": {
			signers: []string{"wallet", "owned"},
			instructions: []solana.Instruction{systemInstruction(append([]byte{1, 0, 0, 0}, solana.PublicKey{1}.Bytes()...),
				meta("owned", true, true))},
			wantErr: `{"InstructionError":[0,"ModifiedProgramId"]}`, wantLanded: true, wantFee: 10_000,
		},
		"a failure in the second instruction undoes the first": {
			instructions: []solana.Instruction{transferFrom("wallet", "to", rentMinimum), transferFrom("wallet", "to", walletStart)},
			wantErr:      `{"InstructionError":[1,{"Custom":1}]}`, wantLanded: true, wantFee: 5000,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.mustLand(key("faucet"), transferFrom("faucet", "poor", rentMinimum))
			l.land([]string{"faucet", "owned"}, system.NewCreateAccountInstruction(rentMinimum, 0, owner, address("faucet"), address("owned")).Build())
			l.land([]string{"faucet", "data"}, system.NewCreateAccountInstruction(bank.RentExemption(8), 8, solana.SystemProgramID, address("faucet"), address("data")).Build())
			if test.signers == nil {
				test.signers = []string{"wallet"}
			}
			before := l.balance(bank.Processed, address(test.signers[0]))
			tx := l.sign(l.blockhash(bank.Processed), keys(test.signers), test.instructions...)
			landed, err := l.Submit(tx)
			if got := wire(t, err); got != test.wantErr || landed != test.wantLanded {
				t.Fatalf("landed %v with %s, want %v with %s", landed, got, test.wantLanded, test.wantErr)
			}
			after := l.balance(bank.Processed, address(test.signers[0]))
			if !landed {
				if after != before {
					t.Errorf("the payer of a transaction that never landed lost %d lamports", before-after)
				}
				return
			}
			got := l.meta(tx.Signature())
			if got.Fee != test.wantFee {
				t.Errorf("fee is %d lamports, want %d", got.Fee, test.wantFee)
			}
			if err != nil && before-after != test.wantFee {
				t.Errorf("the failed transaction cost its payer %d lamports, want the fee of %d", before-after, test.wantFee)
			}
			if test.wantLog != "" && !strings.Contains(strings.Join(got.Logs, "\n"), test.wantLog) {
				t.Errorf("logs are %q, want %q among them", got.Logs, test.wantLog)
			}
		})
	}
}

func keys(names []string) (out []solana.PrivateKey) {
	for _, name := range names {
		out = append(out, key(name))
	}
	return out
}

func (l *ledger) land(signers []string, instructions ...solana.Instruction) {
	l.t.Helper()
	if landed, err := l.Submit(l.sign(l.blockhash(bank.Processed), keys(signers), instructions...)); !landed || err != nil {
		l.t.Fatalf("transaction landed %v with error %v, want it to succeed", landed, err)
	}
}

func TestMetaHasBalancesLogsAndUnits(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	tx := l.mustLand(l.wallet, unitLimit(1000), unitPrice(1_000_000), transferFrom("wallet", "to", rentMinimum))
	want := bank.Meta{
		Fee: 6000, Units: 450, LoadedData: 228, Price: 1_000_000,
		PreBalances:  []uint64{walletStart, 0, 1, 1},
		PostBalances: []uint64{walletStart - 6000 - rentMinimum, rentMinimum, 1, 1},
		Inner:        []rpc.InnerInstruction{}, PreTokens: []rpc.TokenBalance{}, PostTokens: []rpc.TokenBalance{},
		Logs: []string{
			"Program ComputeBudget111111111111111111111111111111 invoke [1]",
			"Program ComputeBudget111111111111111111111111111111 success",
			"Program ComputeBudget111111111111111111111111111111 invoke [1]",
			"Program ComputeBudget111111111111111111111111111111 success",
			"Program 11111111111111111111111111111111 invoke [1]",
			"Program 11111111111111111111111111111111 success",
		},
	}
	if diff := cmp.Diff(want, l.meta(tx.Signature())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTransactionWithRepeatedAccountNeverLands(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	build := func(keys []solana.PublicKey) *bank.Transaction {
		return l.signTransaction(&solana.Transaction{Message: solana.Message{
			Header:          solana.MessageHeader{NumRequiredSignatures: 1},
			AccountKeys:     append([]solana.PublicKey{l.wallet.PublicKey()}, keys...),
			RecentBlockhash: l.blockhash(bank.Processed),
		}}, []solana.PrivateKey{l.wallet})
	}
	if landed, err := l.Submit(build([]solana.PublicKey{address("a"), address("a")})); landed || wire(t, err) != `"AccountLoadedTwice"` {
		t.Errorf("landed %v with %s, want AccountLoadedTwice", landed, wire(t, err))
	}
	if landed, err := l.Submit(build([]solana.PublicKey{address("a"), address("b")})); !landed || err != nil {
		t.Errorf("landed %v with error %v, want a transaction without instructions to succeed", landed, err)
	}
}

func TestPrioritizationFeesAreTheSmallestOfEachBlock(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.Advance(1)
	l.mustLand(l.wallet, unitLimit(1000), unitPrice(900), transferFrom("wallet", "a", rentMinimum))
	l.mustLand(l.wallet, unitLimit(1000), unitPrice(700), transferFrom("wallet", "b", rentMinimum))
	l.Advance(1)
	l.mustLand(l.wallet, unitLimit(1000), unitPrice(500), transferFrom("wallet", "b", rentMinimum))
	tests := map[string]struct {
		addresses []solana.PublicKey
		want      uint64
	}{
		"of all transactions":                             {nil, 700},
		"of transactions that write an address":           {[]solana.PublicKey{address("a")}, 900},
		"of transactions that write one of two addresses": {[]solana.PublicKey{address("a"), address("b")}, 700},
		"0 for an address that is not written":            {[]solana.PublicKey{address("c")}, 0},
		"0 for an address that is only read":              {[]solana.PublicKey{solana.SystemProgramID}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l.Read(bank.Processed, func(v bank.View) {
				want := []rpc.PriorizationFeeResult{{Slot: 0}, {Slot: 1}, {Slot: 2, PrioritizationFee: test.want}}
				if diff := cmp.Diff(want, v.PrioritizationFees(test.addresses)); diff != "" {
					t.Errorf("fees of the closed slots (-want +got):\n%s", diff)
				}
			})
		})
	}
}
