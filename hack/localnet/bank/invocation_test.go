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

// customProgram is a program that runs a function of the test, which can break a rule of the bank.
func customProgram(process func(*bank.Invocation) error) bank.Program {
	return bank.Program{
		ID:      address("custom"),
		Account: bank.Account{Lamports: 1_000_000_000, Owner: solana.BPFLoaderUpgradeableProgramID, Executable: true},
		Process: process,
	}
}

func at(v *bank.Invocation, i int) *bank.AccountRef {
	account, err := v.Account(i)
	if err != nil {
		panic(err)
	}
	return account
}

// newData is a function for SetDataLater.
func newData() []byte { return []byte("!") }

func TestProgramsChangeOnlyTheirOwnAccounts(t *testing.T) {
	t.Parallel()
	// The accounts that the instruction passes, in this order.
	const (
		wallet = iota
		owned
		readonlyOwned
		foreign
		vault
		systemProgram
	)
	seeds := [][]byte{[]byte("vault"), {255}}
	for bump := byte(255); ; bump-- {
		seeds[1] = []byte{bump}
		if _, err := solana.CreateProgramAddress(seeds, address("custom")); err == nil {
			break
		}
	}
	vaultKey, _ := solana.CreateProgramAddress(seeds, address("custom"))
	transferBy := func(from, to solana.PublicKey) solana.Instruction {
		return system.NewTransferInstruction(1000, from, to).Build()
	}
	tests := map[string]struct {
		process func(*bank.Invocation) error
		wantErr string
		wantLog string
	}{
		"may move lamports from its own account to another's": {
			process: func(v *bank.Invocation) error {
				if err := at(v, owned).SubLamports(5); err != nil {
					return err
				}
				return at(v, foreign).AddLamports(5)
			},
			wantErr: `null`, wantLog: "consumed 0 of 200000 compute units",
		},
		"may not spend another's lamports": {
			process: func(v *bank.Invocation) error { return at(v, foreign).SubLamports(5) },
			wantErr: `{"InstructionError":[0,"ExternalAccountLamportSpend"]}`,
		},
		"may not spend from its own account passed as read-only": {
			process: func(v *bank.Invocation) error { return at(v, readonlyOwned).SubLamports(5) },
			wantErr: `{"InstructionError":[0,"ReadonlyLamportChange"]}`,
		},
		"may not spend more than its balance": {
			process: func(v *bank.Invocation) error { return at(v, owned).SubLamports(1 << 62) },
			wantErr: `{"InstructionError":[0,"ArithmeticOverflow"]}`,
		},
		"may not create lamports": {
			process: func(v *bank.Invocation) error { return at(v, foreign).AddLamports(5) },
			wantErr: `{"InstructionError":[0,"UnbalancedInstruction"]}`,
		},
		"may not destroy lamports": {
			process: func(v *bank.Invocation) error { return at(v, owned).SubLamports(5) },
			wantErr: `{"InstructionError":[0,"UnbalancedInstruction"]}`,
		},
		"may change its own data": {
			process: func(v *bank.Invocation) error { return at(v, owned).SetData([]byte("changed!")) },
			wantErr: `null`,
		},
		"may not change another's data": {
			process: func(v *bank.Invocation) error { return at(v, foreign).SetData([]byte("changed!")) },
			wantErr: `{"InstructionError":[0,"ExternalAccountDataModified"]}`,
		},
		"may not resize another's data": {
			process: func(v *bank.Invocation) error { return at(v, foreign).SetData(nil) },
			wantErr: `{"InstructionError":[0,"AccountDataSizeChanged"]}`,
		},
		"may not change data passed as read-only": {
			process: func(v *bank.Invocation) error { return at(v, readonlyOwned).SetData([]byte("changed!")) },
			wantErr: `{"InstructionError":[0,"ReadonlyDataModified"]}`,
		},
		"may not grow data beyond the largest account": {
			process: func(v *bank.Invocation) error { return at(v, owned).SetData(make([]byte, bank.MaxAccountData+1)) },
			wantErr: `{"InstructionError":[0,"InvalidRealloc"]}`,
		},
		"may not grow data without its rent": {
			process: func(v *bank.Invocation) error { return at(v, owned).SetData(make([]byte, 5000)) },
			wantErr: `{"InsufficientFundsForRent":{"account_index":1}}`,
		},
		"may defer a write to its own data": {
			process: func(v *bank.Invocation) error { return at(v, owned).SetDataLater(newData) },
			wantErr: `null`,
		},
		"may not defer a write to another's data": {
			process: func(v *bank.Invocation) error { return at(v, foreign).SetDataLater(newData) },
			wantErr: `{"InstructionError":[0,"ExternalAccountDataModified"]}`,
		},
		"may not defer a write to data passed as read-only": {
			process: func(v *bank.Invocation) error { return at(v, readonlyOwned).SetDataLater(newData) },
			wantErr: `{"InstructionError":[0,"ReadonlyDataModified"]}`,
		},
		"may not change the owner of its account after deferring a write to it": {
			process: func(v *bank.Invocation) error {
				if err := at(v, owned).SetDataLater(newData); err != nil {
					return err
				}
				return at(v, owned).SetOwner(address("other"))
			},
			wantErr: `{"InstructionError":[0,"ModifiedProgramId"]}`,
		},
		"may change the owner of its account when the data is zero": {
			process: func(v *bank.Invocation) error { return at(v, owned).SetOwner(address("other")) },
			wantErr: `null`,
		},
		"may not change the owner of its account when it has data": {
			process: func(v *bank.Invocation) error {
				if err := at(v, owned).SetData([]byte("changed!")); err != nil {
					return err
				}
				return at(v, owned).SetOwner(address("other"))
			},
			wantErr: `{"InstructionError":[0,"ModifiedProgramId"]}`,
		},
		"may not make itself the owner of another's account": {
			process: func(v *bank.Invocation) error { return at(v, foreign).SetOwner(v.ProgramID) },
			wantErr: `{"InstructionError":[0,"ModifiedProgramId"]}`,
		},
		"fails for an account that the instruction does not pass": {
			process: func(v *bank.Invocation) error { _, err := v.Account(6); return err },
			wantErr: `{"InstructionError":[0,"NotEnoughAccountKeys"]}`,
		},
		"fails above the compute limit": {
			process: func(v *bank.Invocation) error { return v.Consume(200_001) },
			wantErr: `{"InstructionError":[0,"ComputationalBudgetExceeded"]}`, wantLog: "consumed 200000 of 200000 compute units",
		},
		"returns its own error code": {
			process: func(*bank.Invocation) error { return bank.CustomError(0x1001) },
			wantErr: `{"InstructionError":[0,{"Custom":4097}]}`, wantLog: "failed: custom program error: 0x1001",
		},
		"returns an error that the chain does not know": {
			process: func(*bank.Invocation) error { return strings.NewReader("").UnreadByte() },
			wantErr: `{"InstructionError":[0,"GenericError"]}`,
		},
		"may invoke a transfer from a signer": {
			process: func(v *bank.Invocation) error { return v.Invoke(transferBy(address("wallet"), address("foreign"))) },
			wantErr: `null`, wantLog: "Program 11111111111111111111111111111111 invoke [2]",
		},
		"may invoke with its program address as signer": {
			process: func(v *bank.Invocation) error { return v.Invoke(transferBy(vaultKey, address("foreign")), seeds) },
			wantErr: `null`,
		},
		"may not sign for a program address without its seeds": {
			process: func(v *bank.Invocation) error { return v.Invoke(transferBy(vaultKey, address("foreign"))) },
			wantErr: `{"InstructionError":[0,"PrivilegeEscalation"]}`,
			wantLog: vaultKey.String() + "'s signer privilege escalated",
		},
		"may not make a read-only account writable": {
			process: func(v *bank.Invocation) error { return v.Invoke(transferBy(address("wallet"), address("readonly"))) },
			wantErr: `{"InstructionError":[0,"PrivilegeEscalation"]}`,
			wantLog: address("readonly").String() + "'s writable privilege escalated",
		},
		"may not pass on an account that the instruction does not pass": {
			process: func(v *bank.Invocation) error { return v.Invoke(transferBy(address("wallet"), address("stranger"))) },
			wantErr: `{"InstructionError":[0,"MissingAccount"]}`,
		},
		"may not invoke a program that the transaction does not name": {
			process: func(v *bank.Invocation) error { return v.Invoke(solana.NewInstruction(address("stranger"), nil, nil)) },
			wantErr: `{"InstructionError":[0,"MissingAccount"]}`, wantLog: "Unknown program",
		},
		"may not sign with invalid seeds": {
			process: func(v *bank.Invocation) error {
				return v.Invoke(transferBy(vaultKey, address("foreign")), [][]byte{make([]byte, 33)})
			},
			wantErr: `{"InstructionError":[0,"InvalidSeeds"]}`,
		},
		"may not invoke without enough compute units": {
			process: func(v *bank.Invocation) error {
				if err := v.Consume(199_500); err != nil {
					return err
				}
				return v.Invoke(transferBy(address("wallet"), address("foreign")))
			},
			wantErr: `{"InstructionError":[0,"ComputationalBudgetExceeded"]}`,
		},
		"returns the error of the program that it invokes": {
			process: func(v *bank.Invocation) error {
				return v.Invoke(system.NewTransferInstruction(1<<62, address("wallet"), address("foreign")).Build())
			},
			wantErr: `{"InstructionError":[0,{"Custom":1}]}`,
		},
		"may not invoke itself without end": {
			process: func(v *bank.Invocation) error { return v.Invoke(solana.NewInstruction(v.ProgramID, nil, nil)) },
			wantErr: `{"InstructionError":[0,"CallDepth"]}`, wantLog: "invoke [5]",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := customProgram(test.process)
			l := newLedger(t, program)
			for _, name := range []string{"owned", "readonly"} {
				l.land([]string{"faucet", name}, system.NewCreateAccountInstruction(
					10_000_000, 8, program.ID, address("faucet"), address(name)).Build())
			}
			l.land([]string{"faucet", "foreign"}, system.NewCreateAccountInstruction(
				10_000_000, 8, solana.SystemProgramID, address("faucet"), address("foreign")).Build())
			l.mustLand(key("faucet"), system.NewTransferInstruction(10_000_000, address("faucet"), vaultKey).Build())
			accounts := solana.AccountMetaSlice{
				wallet: meta("wallet", true, true), owned: meta("owned", false, true), readonlyOwned: meta("readonly", false, false),
				foreign: meta("foreign", false, true), vault: solana.NewAccountMeta(vaultKey, true, false),
				systemProgram: solana.NewAccountMeta(solana.SystemProgramID, false, false),
			}
			tx := l.sign(l.blockhash(bank.Processed), []solana.PrivateKey{l.wallet},
				solana.NewInstruction(program.ID, accounts, nil))
			landed, err := l.Submit(tx)
			if got := wire(t, err); !landed || got != strings.ReplaceAll(test.wantErr, `"account_index":1`, `"account_index":`+index(tx, "owned")) {
				t.Errorf("landed %v with %s, want it to land with %s", landed, got, test.wantErr)
			}
			if logs := strings.Join(l.meta(tx.Signature()).Logs, "\n"); !strings.Contains(logs, test.wantLog) {
				t.Errorf("logs are\n%s\nwant %q among them", logs, test.wantLog)
			}
		})
	}
}

// index returns the transaction's index of an account as a digit.
func index(tx *bank.Transaction, name string) string {
	for i, k := range tx.Keys {
		if k == address(name) {
			return string(rune('0' + i))
		}
	}
	return "?"
}

func TestInnerInstructionsAreRecorded(t *testing.T) {
	t.Parallel()
	program := customProgram(func(v *bank.Invocation) error {
		return v.Invoke(system.NewTransferInstruction(2_000_000, address("wallet"), address("to")).Build())
	})
	l := newLedger(t, program)
	tx := l.mustLand(l.wallet, unitLimit(10_000), solana.NewInstruction(program.ID, solana.AccountMetaSlice{
		meta("wallet", true, true), meta("to", false, true), solana.NewAccountMeta(solana.SystemProgramID, false, false)}, nil))
	number := func(k solana.PublicKey) uint16 {
		for i := range tx.Keys {
			if tx.Keys[i] == k {
				return uint16(i)
			}
		}
		t.Fatalf("the transaction does not name %s", k)
		return 0
	}
	want := []rpc.InnerInstruction{{Index: 1, Instructions: []rpc.CompiledInstruction{{
		ProgramIDIndex: number(solana.SystemProgramID), Accounts: []uint16{0, number(address("to"))},
		Data: []byte{2, 0, 0, 0, 0x80, 0x84, 0x1e, 0, 0, 0, 0, 0}, StackHeight: 2,
	}}}}
	got := l.meta(tx.Signature())
	if diff := cmp.Diff(want, got.Inner); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Units != 150+1000+150 {
		t.Errorf("consumed %d units, want 1300: the compute-budget instruction, the call and the transfer", got.Units)
	}
}

func TestReentrantInvocationIsRefused(t *testing.T) {
	t.Parallel()
	first := customProgram(func(v *bank.Invocation) error {
		return v.Invoke(solana.NewInstruction(address("second"), solana.AccountMetaSlice{
			meta("custom", false, false)}, nil))
	})
	second := customProgram(func(v *bank.Invocation) error {
		return v.Invoke(solana.NewInstruction(address("custom"), nil, nil))
	})
	second.ID = address("second")
	l := newLedger(t, first, second)
	tx := l.sign(l.blockhash(bank.Processed), []solana.PrivateKey{l.wallet}, solana.NewInstruction(first.ID,
		solana.AccountMetaSlice{meta("custom", false, false), meta("second", false, false)}, nil))
	if _, err := l.Submit(tx); wire(t, err) != `{"InstructionError":[0,"ReentrancyNotAllowed"]}` {
		t.Errorf("got %s, want ReentrancyNotAllowed", wire(t, err))
	}
}

// TestRepeatedAccountHasCombinedRights passes the same account as read-only, as signer and as
// writable in one instruction, as routes through several markets do.
func TestRepeatedAccountHasCombinedRights(t *testing.T) {
	t.Parallel()
	callee := customProgram(func(v *bank.Invocation) error {
		for i := range 3 {
			if a := at(v, i); !a.IsWritable() || !a.IsSigner() {
				t.Errorf("account %d: writable %v, signer %v, want both", i, a.IsWritable(), a.IsSigner())
			}
		}
		return nil
	})
	callee.ID = address("callee")
	caller := customProgram(func(v *bank.Invocation) error {
		return v.Invoke(solana.NewInstruction(callee.ID, solana.AccountMetaSlice{
			meta("wallet", false, false), meta("wallet", true, false), meta("wallet", false, true)}, nil))
	})
	l := newLedger(t, caller, callee)
	l.mustLand(l.wallet, solana.NewInstruction(caller.ID, solana.AccountMetaSlice{
		meta("wallet", true, true), meta("callee", false, false)}, nil))
}
