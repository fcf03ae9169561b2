package bank

import (
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
)

const (
	// builtinUnits is the cost of an instruction of a native program, in compute
	// units.
	builtinUnits = 150
	// invokeUnits is the cost of a cross-program invocation to its caller, in
	// compute units.
	invokeUnits    = 1000
	maxStackHeight = 5
)

// Program is one program of the chain.
type Program struct {
	ID solana.PublicKey
	// Account is the program's own account at genesis.
	Account Account
	// Builtin programs are part of the validator. Their logs do not name the
	// compute units.
	Builtin bool
	// Process runs one instruction. It returns nil, an InstructionError or a
	// CustomError. An error undoes the whole transaction except for the fee.
	Process func(*Invocation) error
}

// loadedProgram is a program with the log lines that each of its calls writes. The
// lines are made once, because the history keeps a dozen of them per transaction.
type loadedProgram struct {
	Program
	name    string
	invoke  [maxStackHeight]string
	success string
}

func loadProgram(p Program) *loadedProgram {
	l := &loadedProgram{Program: p, name: p.ID.String()}
	for i := range l.invoke {
		l.invoke[i] = fmt.Sprintf("Program %s invoke [%d]", l.name, i+1)
	}
	l.success = fmt.Sprintf("Program %s success", l.name)
	return l
}

// workAccount is an account while a transaction runs.
type workAccount struct {
	Account
	key solana.PublicKey
	// deferred makes the data; nil unless SetDataLater was called.
	deferred func() []byte
}

func (w *workAccount) applyDeferred() {
	if w.deferred != nil {
		w.Data, w.deferred = w.deferred(), nil
	}
}

// execution is the state that the instructions of one transaction share.
type execution struct {
	slot      uint64
	rent      Rent
	programs  map[solana.PublicKey]*loadedProgram
	accounts  []workAccount
	unitsLeft uint64
	logs      []string
	inner     []rpc.InnerInstruction
	// stack[:height] are the running programs, the innermost last.
	stack  [maxStackHeight]solana.PublicKey
	height int
}

func (x *execution) log(format string, args ...any) {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	x.logs = append(x.logs, format)
}

// instructionAccount is one account of an instruction with the rights that
// the instruction has on it.
type instructionAccount struct {
	index            int
	signer, writable bool
}

// Invocation is one running instruction. A program reaches accounts only through
// its Invocation.
type Invocation struct {
	// ProgramID is the running program.
	ProgramID solana.PublicKey
	// Data is the instruction's data, not to be changed.
	Data []byte

	x        *execution
	accounts []instructionAccount
	height   int
}

// Slot is the slot that the transaction runs in.
func (v *Invocation) Slot() uint64 { return v.x.slot }

// Rent is the rate of rent in that slot.
func (v *Invocation) Rent() Rent { return v.x.rent }

// Accounts is the number of accounts that the instruction passes.
func (v *Invocation) Accounts() int { return len(v.accounts) }

// Account returns the instruction's account at position i, or
// ErrNotEnoughAccountKeys when the instruction has fewer.
func (v *Invocation) Account(i int) (*AccountRef, error) {
	if i >= len(v.accounts) {
		return nil, ErrNotEnoughAccountKeys
	}
	return &AccountRef{invocation: v, rights: v.accounts[i], work: &v.x.accounts[v.accounts[i].index]}, nil
}

// Take returns the instruction's first n accounts.
func (v *Invocation) Take(n int) ([]*AccountRef, error) {
	out := make([]*AccountRef, n)
	for i := range out {
		var err error
		if out[i], err = v.Account(i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Consume meters compute units. Above the transaction's limit it returns
// ErrComputationalBudgetExceeded, as Agave does in a syscall. Agave returns
// ProgramFailedToComplete when a program's bytecode exceeds the limit; this chain
// runs no bytecode.
func (v *Invocation) Consume(units uint64) error {
	if v.x.unitsLeft < units {
		v.x.unitsLeft = 0
		return ErrComputationalBudgetExceeded
	}
	v.x.unitsLeft -= units
	return nil
}

// Log writes a line to the transaction's log: format itself, or formatted with args
// if there are any. The caller adds the prefix "Program log: " of on-chain programs.
func (v *Invocation) Log(format string, args ...any) { v.x.log(format, args...) }

// Invoke runs an instruction of another program, on accounts of this instruction.
// The program address that each entry of seeds (bump included) derives counts as a
// signer. Invoke consumes compute units.
func (v *Invocation) Invoke(ix solana.Instruction, seeds ...[][]byte) error {
	if err := v.Consume(invokeUnits); err != nil {
		return err
	}
	if v.height >= maxStackHeight {
		return ErrCallDepth
	}
	derived := make([]solana.PublicKey, len(seeds))
	for i, s := range seeds {
		key, err := solana.CreateProgramAddress(s, v.ProgramID)
		if err != nil {
			return ErrInvalidSeeds
		}
		derived[i] = key
	}
	data, err := ix.Data()
	if err != nil {
		return ErrInvalidInstructionData
	}
	accounts := make([]instructionAccount, len(ix.Accounts()))
	for i, meta := range ix.Accounts() {
		if accounts[i], err = v.passAccount(*meta, derived); err != nil {
			return err
		}
	}
	mergeRights(accounts)
	program := v.x.index(ix.ProgramID())
	if program < 0 {
		v.Log("Unknown program %s", ix.ProgramID())
		return ErrMissingAccount
	}
	if v.x.suspended(ix.ProgramID()) {
		return ErrReentrancyNotAllowed
	}
	v.x.record(program, accounts, data, v.height+1)
	return v.x.run(ix.ProgramID(), accounts, data, v.height+1)
}

// passAccount finds an account of this instruction for a called program. It checks
// that the called program gets no signer or write privilege that this instruction
// lacks. The addresses in derived count as signers.
func (v *Invocation) passAccount(meta solana.AccountMeta, derived []solana.PublicKey) (instructionAccount, error) {
	out := instructionAccount{index: -1, signer: meta.IsSigner, writable: meta.IsWritable}
	var signer, writable bool
	for _, a := range v.accounts {
		if v.x.accounts[a.index].key == meta.PublicKey {
			out.index = a.index
			signer = signer || a.signer
			writable = writable || a.writable
		}
	}
	if out.index < 0 {
		v.Log("Instruction references an unknown account %s", meta.PublicKey)
		return out, ErrMissingAccount
	}
	signer = signer || slices.Contains(derived, meta.PublicKey)
	if meta.IsWritable && !writable {
		v.Log("%s's writable privilege escalated", meta.PublicKey)
		return out, ErrPrivilegeEscalation
	}
	if meta.IsSigner && !signer {
		v.Log("%s's signer privilege escalated", meta.PublicKey)
		return out, ErrPrivilegeEscalation
	}
	return out, nil
}

// mergeRights combines the rights of an account that an instruction passes more
// than once.
func mergeRights(accounts []instructionAccount) {
	for i := range accounts {
		for j := range accounts[:i] {
			a, b := &accounts[i], &accounts[j]
			if a.index == b.index {
				a.signer, a.writable = a.signer || b.signer, a.writable || b.writable
				b.signer, b.writable = a.signer, a.writable
			}
		}
	}
}

// suspended reports whether the program waits for a program that it called. Such
// a program must not be called again. The innermost program may call itself.
func (x *execution) suspended(program solana.PublicKey) bool {
	running := x.stack[:x.height]
	return running[len(running)-1] != program && slices.Contains(running, program)
}

func (x *execution) index(key solana.PublicKey) int {
	return slices.IndexFunc(x.accounts, func(a workAccount) bool { return a.key == key })
}

// record adds an inner instruction to the transaction's metadata.
func (x *execution) record(program int, accounts []instructionAccount, data []byte, height int) {
	indices := make([]uint16, len(accounts))
	for i, a := range accounts {
		indices[i] = uint16(a.index) //nolint:gosec // an account index is one byte on the wire
	}
	last := &x.inner[len(x.inner)-1]
	last.Instructions = append(last.Instructions, rpc.CompiledInstruction{
		ProgramIDIndex: uint16(program),                                  //nolint:gosec // as above
		Accounts:       indices, Data: data, StackHeight: uint16(height), //nolint:gosec // at most maxStackHeight
	})
}

// run runs one instruction at a stack height and logs it as Agave does.
func (x *execution) run(id solana.PublicKey, accounts []instructionAccount, data []byte, height int) error {
	program, ok := x.programs[id]
	if !ok {
		x.log("Program %s invoke [%d]", id, height)
		x.log("Program %s failed: %v", id, ErrUnsupportedProgramID)
		return ErrUnsupportedProgramID
	}
	x.log(program.invoke[height-1])
	x.stack[height-1], x.height = id, height
	defer func() { x.height = height - 1 }()
	before, sum := x.unitsLeft, x.sum(accounts)
	err := program.Process(&Invocation{ProgramID: id, Data: data, x: x, accounts: accounts, height: height})
	if err == nil && x.sum(accounts) != sum {
		err = ErrUnbalancedInstruction
	}
	if !program.Builtin {
		x.log("Program %s consumed %d of %d compute units", program.name, before-x.unitsLeft, before)
	}
	if err != nil {
		x.log("Program %s failed: %v", program.name, err)
		return err
	}
	x.log(program.success)
	return nil
}

// sum adds the lamports of the accounts of one instruction, each account once. It
// cannot overflow: all lamports of the chain fit in 64 bits.
func (x *execution) sum(accounts []instructionAccount) uint64 {
	var total uint64
	for i, a := range accounts {
		if !slices.ContainsFunc(accounts[:i], func(earlier instructionAccount) bool { return earlier.index == a.index }) {
			total += x.accounts[a.index].Lamports
		}
	}
	return total
}

// Refuse logs a reason and returns err. The reason names a rule, never a value.
func (v *Invocation) Refuse(err error, reason string) error {
	v.Log("Program log: " + reason)
	return err
}
