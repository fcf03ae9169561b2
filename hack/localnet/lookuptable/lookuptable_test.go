package lookuptable_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/lookuptable"
	"github.com/relaypool/relaypool/hack/localnet/lookuptable/layout"
)

// key makes the key pair that belongs to a name, so that failures repeat.
func key(name string) solana.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

func address(name string) solana.PublicKey { return key(name).PublicKey() }

// world is a chain with the lookup table program. "payer" pays for everything.
type world struct {
	*bank.Bank
	t     testing.TB
	units uint32
}

func newWorld(t testing.TB, accounts map[solana.PublicKey]bank.Account) *world {
	t.Helper()
	b, err := bank.New(bank.Options{
		Genesis: sha256.Sum256([]byte("test")), ConfirmAfter: 2, FinalizeAfter: 32, History: 1000,
		Clock:    func() time.Time { return time.Unix(1_700_000_000, 0) },
		Programs: []bank.Program{bank.SystemProgram(), bank.ComputeBudgetProgram(), lookuptable.Program()},
		Accounts: accounts,
		Faucet:   address("payer"), FaucetLamports: 1_000_000 * solana.LAMPORTS_PER_SOL,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Bank: b, t: t}
	w.Advance(1)
	return w
}

// try lands a transaction of the payer's that the named ones sign as well, and
// gives its error as RPC clients see it; "null" for none.
func (w *world) try(instruction solana.Instruction, signers ...string) string {
	w.t.Helper()
	var hash solana.Hash
	w.Read(bank.Processed, func(v bank.View) { hash, _ = v.LatestBlockhash() })
	w.units++
	limit := solana.NewInstruction(solana.ComputeBudget, nil, binary.LittleEndian.AppendUint32([]byte{2}, 100_000+w.units))
	tx, err := solana.NewTransaction([]solana.Instruction{limit, instruction}, hash, solana.TransactionPayer(address("payer")))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Sign(func(of solana.PublicKey) *solana.PrivateKey {
		for _, name := range append(signers, "payer") {
			if address(name) == of {
				k := key(name)
				return &k
			}
		}
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		w.t.Fatal(err)
	}
	decoded, err := bank.DecodeTransaction(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	landed, failure := w.Submit(decoded)
	if !landed {
		w.t.Fatalf("the transaction did not land: %v", failure)
	}
	out, err := json.Marshal(failure)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(out)
}

func (w *world) must(instruction solana.Instruction, signers ...string) {
	w.t.Helper()
	if got := w.try(instruction, signers...); got != "null" {
		w.t.Fatalf("got error %s, want none", got)
	}
}

func (w *world) slot() (slot uint64) {
	w.Read(bank.Processed, func(v bank.View) { slot = v.Slot() })
	return slot
}

// table reads a table.
func (w *world) table(at solana.PublicKey) (account *bank.Account, header *layout.Header) {
	w.t.Helper()
	w.Read(bank.Processed, func(v bank.View) { account = v.Account(at) })
	if account == nil {
		return nil, nil
	}
	header, err := layout.Parse(account.Data[:layout.HeaderSize], len(account.Data))
	if err != nil {
		w.t.Fatal(err)
	}
	return account, header
}

// create makes a table of "owner" that belongs to the newest closed slot.
func (w *world) create() solana.PublicKey {
	w.t.Helper()
	ix, table, err := lookuptable.Create(address("owner"), address("payer"), w.slot()-1)
	if err != nil {
		w.t.Fatal(err)
	}
	w.must(ix)
	return table
}

func numbered(n int) (out []solana.PublicKey) {
	for i := range n {
		out = append(out, address(fmt.Sprint("account ", i)))
	}
	return out
}

func (w *world) extend(table solana.PublicKey, addresses []solana.PublicKey) {
	w.t.Helper()
	w.must(lookuptable.Extend(table, address("owner"), address("payer"), addresses), "owner")
}

func custom(code string) string { return `{"InstructionError":[1,{"Custom":` + code + `}]}` }

func builtin(name string) string { return `{"InstructionError":[1,"` + name + `"]}` }

func TestATableLivesFromCreationToClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	table := w.create()
	owner := address("owner")
	account, header := w.table(table)
	if diff := cmp.Diff(&layout.Header{DeactivationSlot: layout.Never, Authority: &owner}, header); diff != "" {
		t.Errorf("a new table (-want +got):\n%s", diff)
	}
	if account.Lamports != bank.RentExemption(layout.HeaderSize) || account.Owner != solana.AddressLookupTableProgramID {
		t.Errorf("it has %d lamports and owner %s, want its rent and the program", account.Lamports, account.Owner)
	}
	all := numbered(25)
	w.extend(table, all[:5])
	w.extend(table, all[5:20])
	first := w.slot()
	if _, header = w.table(table); header.LastExtendedSlot != first || header.LastExtendedStart != 0 {
		t.Errorf("header is %+v, want all addresses new at slot %d", header, first)
	}
	w.Advance(1)
	w.extend(table, all[20:])
	account, header = w.table(table)
	if header.LastExtendedSlot != first+1 || header.LastExtendedStart != 20 {
		t.Errorf("header is %+v, want the addresses from 20 on new at slot %d", header, first+1)
	}
	for i, want := range all {
		if got := solana.PublicKeyFromBytes(account.Data[layout.At(i):layout.At(i+1)]); got != want {
			t.Errorf("address %d is %s, want %s", i, got, want)
		}
	}
	if want := bank.RentExemption(uint64(layout.Size(25))); account.Lamports != want {
		t.Errorf("it has %d lamports, want the rent for its size, %d", account.Lamports, want)
	}
	w.must(lookuptable.Deactivate(table, owner), "owner")
	if _, header = w.table(table); header.DeactivationSlot != w.slot() {
		t.Errorf("deactivated at %d, want slot %d", header.DeactivationSlot, w.slot())
	}
	closing := lookuptable.Close(table, owner, address("heir"))
	for _, blocks := range []uint64{0, 1, layout.RecentSlots - 1} {
		w.Advance(blocks)
		if got, want := w.try(closing, "owner"), builtin("InvalidArgument"); got != want {
			t.Errorf("%d blocks later closing gives %s, want %s", blocks, got, want)
		}
	}
	w.Advance(1)
	w.must(closing, "owner")
	if account, _ = w.table(table); account != nil {
		t.Errorf("the table is %+v, want it gone", account)
	}
	w.Read(bank.Processed, func(v bank.View) {
		if heir := v.Account(address("heir")); heir == nil || heir.Lamports != bank.RentExemption(uint64(layout.Size(25))) {
			t.Errorf("the heir is %+v, want the table's lamports", heir)
		}
	})
}

func TestATableHoldsUpTo256Addresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	table := w.create()
	all := numbered(257)
	for from := 0; from < 240; from += lookuptable.MostInOne {
		w.extend(table, all[from:from+lookuptable.MostInOne])
	}
	over := lookuptable.Extend(table, address("owner"), address("payer"), all[240:257])
	if got, want := w.try(over, "owner"), builtin("InvalidInstructionData"); got != want {
		t.Errorf("17 more addresses give %s, want %s", got, want)
	}
	w.extend(table, all[240:256])
	one := lookuptable.Extend(table, address("owner"), address("payer"), all[256:])
	if got, want := w.try(one, "owner"), builtin("InvalidArgument"); got != want {
		t.Errorf("one more than 256 gives %s, want %s", got, want)
	}
}

func TestATableIsMadeWhereLamportsAreAlready(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ix, table, err := lookuptable.Create(address("owner"), address("payer"), w.slot()-1)
	if err != nil {
		t.Fatal(err)
	}
	w.must(system.NewTransferInstruction(5_000_000, address("payer"), table).Build())
	w.must(ix)
	account, _ := w.table(table)
	if account.Lamports != 5_000_000 {
		t.Errorf("the table has %d lamports, want those that were there", account.Lamports)
	}
	w.extend(table, numbered(2))
	before, _ := w.table(table)
	w.must(ix)
	after, _ := w.table(table)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("making it again changed it:\n%s", diff)
	}
}

func TestBadInstructionsAreRefusedAsOnMainnet(t *testing.T) {
	t.Parallel()
	owner := address("owner")
	header := func(h layout.Header, addresses int) bank.Account {
		account := lookuptable.Table(numbered(addresses))
		copy(account.Data, h.Bytes())
		return account
	}
	w := newWorld(t, map[solana.PublicKey]bank.Account{
		address("table"):         header(layout.Header{DeactivationSlot: layout.Never, Authority: &owner}, 2),
		address("empty"):         header(layout.Header{DeactivationSlot: layout.Never, Authority: &owner}, 0),
		address("frozen"):        header(layout.Header{DeactivationSlot: layout.Never}, 2),
		address("deactivated"):   header(layout.Header{DeactivationSlot: 0, Authority: &owner}, 2),
		address("uninitialised"): {Lamports: 10_000_000, Data: make([]byte, layout.HeaderSize), Owner: solana.AddressLookupTableProgramID},
		address("foreign"):       {Lamports: 10_000_000, Data: make([]byte, layout.HeaderSize), Owner: solana.TokenProgramID},
	})
	of := func(tag uint32, args []byte, accounts ...*solana.AccountMeta) solana.Instruction {
		return solana.NewInstruction(solana.AddressLookupTableProgramID, accounts,
			append(binary.LittleEndian.AppendUint32(nil, tag), args...))
	}
	mutated := func(ix solana.Instruction, change func([]*solana.AccountMeta)) solana.Instruction {
		var accounts solana.AccountMetaSlice
		for _, meta := range ix.Accounts() {
			accounts = append(accounts, solana.NewAccountMeta(meta.PublicKey, meta.IsWritable, meta.IsSigner))
		}
		change(accounts)
		data, err := ix.Data()
		if err != nil {
			t.Fatal(err)
		}
		return solana.NewInstruction(ix.ProgramID(), accounts, data)
	}
	creation := func(slot uint64) solana.Instruction {
		ix, _, err := lookuptable.Create(owner, address("payer"), slot)
		if err != nil {
			t.Fatal(err)
		}
		return ix
	}
	extend := func(name string, n int) solana.Instruction {
		return lookuptable.Extend(address(name), owner, address("payer"), numbered(n))
	}
	tests := map[string]struct {
		ix      solana.Instruction
		signers []string
		want    string
	}{
		"no data":                       {solana.NewInstruction(solana.AddressLookupTableProgramID, nil, nil), nil, builtin("InvalidInstructionData")},
		"an unknown tag":                {of(5, nil), nil, builtin("InvalidInstructionData")},
		"a creation without a bump":     {of(0, make([]byte, 8)), nil, builtin("InvalidInstructionData")},
		"a creation at the open slot":   {creation(w.slot()), nil, builtin("InvalidInstructionData")},
		"a creation at a later slot":    {creation(w.slot() + 5), nil, builtin("InvalidInstructionData")},
		"a creation by nobody":          {mutated(creation(w.slot()-1), func(m []*solana.AccountMeta) { m[2].PublicKey, m[2].IsSigner = address("x"), false }), nil, builtin("MissingRequiredSignature")},
		"a creation elsewhere":          {mutated(creation(w.slot()-1), func(m []*solana.AccountMeta) { m[0].PublicKey = address("x") }), nil, builtin("InvalidArgument")},
		"more addresses than there are": {of(2, []byte{2, 0, 0, 0, 0, 0, 0, 0, 1}, solana.Meta(address("table")).WRITE()), nil, builtin("InvalidInstructionData")},
		"more than fit any transaction": {of(2, binary.LittleEndian.AppendUint64(nil, 1<<60), solana.Meta(address("table")).WRITE()), nil, builtin("InvalidInstructionData")},
		"no addresses":                  {extend("table", 0), []string{"owner"}, builtin("InvalidInstructionData")},
		"an extension by another": {
			lookuptable.Extend(address("table"), address("x"), address("payer"), numbered(1)), []string{"x"}, builtin("IncorrectAuthority")},
		"an extension unsigned":          {mutated(extend("table", 1), func(m []*solana.AccountMeta) { m[1].IsSigner = false }), nil, builtin("MissingRequiredSignature")},
		"an extension nobody pays":       {mutated(extend("table", 1), func(m []*solana.AccountMeta) { m[2].PublicKey, m[2].IsSigner = address("x"), false }), []string{"owner"}, builtin("MissingRequiredSignature")},
		"an extension without a payer":   {of(2, append([]byte{1, 0, 0, 0, 0, 0, 0, 0}, owner[:]...), solana.Meta(address("table")).WRITE(), solana.Meta(owner).SIGNER()), []string{"owner"}, builtin("NotEnoughAccountKeys")},
		"an extension read-only":         {mutated(extend("table", 1), func(m []*solana.AccountMeta) { m[0].IsWritable = false }), []string{"owner"}, custom("10")},
		"an extension of a frozen one":   {extend("frozen", 1), []string{"owner"}, builtin("Immutable")},
		"of a deactivated one":           {extend("deactivated", 1), []string{"owner"}, builtin("InvalidArgument")},
		"of another program's account":   {extend("foreign", 1), []string{"owner"}, builtin("InvalidAccountOwner")},
		"of one never made":              {extend("uninitialised", 1), []string{"owner"}, builtin("UninitializedAccount")},
		"a freeze of an empty table":     {lookuptable.Freeze(address("empty"), owner), []string{"owner"}, builtin("InvalidInstructionData")},
		"a freeze of a frozen one":       {lookuptable.Freeze(address("frozen"), owner), []string{"owner"}, builtin("Immutable")},
		"a freeze of a deactivated one":  {lookuptable.Freeze(address("deactivated"), owner), []string{"owner"}, builtin("InvalidArgument")},
		"a freeze by another":            {lookuptable.Freeze(address("table"), address("x")), []string{"x"}, builtin("IncorrectAuthority")},
		"a deactivation of a frozen one": {lookuptable.Deactivate(address("frozen"), owner), []string{"owner"}, builtin("Immutable")},
		"a second deactivation":          {lookuptable.Deactivate(address("deactivated"), owner), []string{"owner"}, builtin("InvalidArgument")},
		"a close of an active table":     {lookuptable.Close(address("table"), owner, address("heir")), []string{"owner"}, builtin("InvalidArgument")},
		"a close into itself":            {lookuptable.Close(address("deactivated"), owner, address("deactivated")), []string{"owner"}, builtin("InvalidArgument")},
		"a close by another":             {lookuptable.Close(address("deactivated"), address("x"), address("heir")), []string{"x"}, builtin("IncorrectAuthority")},
	}
	for name, test := range tests {
		if got := w.try(test.ix, test.signers...); got != test.want {
			t.Errorf("%s: got error %s, want %s", name, got, test.want)
		}
	}
}

func TestAFrozenTableStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	table := w.create()
	w.extend(table, numbered(3))
	w.must(lookuptable.Freeze(table, address("owner")), "owner")
	account, header := w.table(table)
	if header.Authority != nil || layout.Addresses(len(account.Data)) != 3 {
		t.Errorf("header is %+v over %d bytes, want no authority and three addresses", header, len(account.Data))
	}
}
