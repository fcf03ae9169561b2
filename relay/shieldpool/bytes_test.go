package shieldpool

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/refusal"
)

func wantRefusal(t *testing.T, err error, code refusal.Code, words ...string) {
	t.Helper()
	r, ok := refusal.As(err)
	if !ok || r.Code != code {
		t.Fatalf("error is %v, want a refusal with code %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(r.Message, w) {
			t.Errorf("message %q does not say %q", r.Message, w)
		}
	}
}

func TestParsePublicInputsRefuses(t *testing.T) {
	t.Parallel()
	amount := func(x uint64) []byte {
		b := make([]byte, PublicInputsLength)
		binary.LittleEndian.PutUint64(b[32:], x)
		return b
	}
	field := func(at int) []byte {
		b := make([]byte, PublicInputsLength)
		FieldModulus().FillBytes(b[at : at+32])
		return b
	}
	tests := map[string]struct {
		in    []byte
		code  refusal.Code
		words []string
	}{
		"nothing":                         {nil, refusal.InvalidPublicInputsLength, []string{"0 bytes", "264"}},
		"one byte short":                  {make([]byte, 263), refusal.InvalidPublicInputsLength, []string{"263", "264"}},
		"one byte long":                   {make([]byte, 265), refusal.InvalidPublicInputsLength, []string{"265", "264"}},
		"the old layout, with a hint":     {make([]byte, 232), refusal.InvalidPublicInputsLength, []string{"232", "264", "chainNoteHash"}},
		"the smallest amount":             {amount(1 << 63), refusal.InvalidPublicAmount, []string{"smallest"}},
		"a root that is r":                {field(0), refusal.NonCanonicalField, []string{"root"}},
		"an extDataHash that is r":        {field(40), refusal.NonCanonicalField, []string{"extDataHash"}},
		"a mintAddress that is r":         {field(72), refusal.NonCanonicalField, []string{"mintAddress"}},
		"a first nullifier that is r":     {field(104), refusal.NonCanonicalField, []string{"nullifiers[0]"}},
		"a second nullifier that is r":    {field(136), refusal.NonCanonicalField, []string{"nullifiers[1]"}},
		"a first commitment that is r":    {field(168), refusal.NonCanonicalField, []string{"commitments[0]"}},
		"a second commitment that is r":   {field(200), refusal.NonCanonicalField, []string{"commitments[1]"}},
		"a chainNoteHash that is r":       {field(232), refusal.NonCanonicalField, []string{"chainNoteHash"}},
		"a root of all ones, far above r": {append(bytes.Repeat([]byte{0xff}, 32), make([]byte, 232)...), refusal.NonCanonicalField, []string{"root"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParsePublicInputs(tt.in)
			wantRefusal(t, err, tt.code, tt.words...)
		})
	}
	if _, err := ParsePublicInputs(amount(1<<63 + 1)); err != nil {
		t.Errorf("the second smallest amount is refused: %v", err)
	}
	largest := make([]byte, PublicInputsLength)
	m := FieldModulus()
	m.Sub(m, big.NewInt(1)).FillBytes(largest[104:136])
	if _, err := ParsePublicInputs(largest); err != nil {
		t.Errorf("the largest field element is refused: %v", err)
	}
}

func TestCheckNullifiers(t *testing.T) {
	t.Parallel()
	one, two := [32]byte{31: 1}, [32]byte{31: 2}
	tests := map[string]struct {
		in   [2][32]byte
		code refusal.Code
	}{
		"two notes":           {[2][32]byte{one, two}, ""},
		"one note, first":     {[2][32]byte{one, {}}, ""},
		"one note, second":    {[2][32]byte{{}, one}, ""},
		"the same note twice": {[2][32]byte{one, one}, refusal.DuplicateNullifier},
		"no note":             {[2][32]byte{}, refusal.NoInput},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := (&PublicInputs{Nullifiers: tt.in}).CheckNullifiers()
			if tt.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantRefusal(t, err, tt.code)
		})
	}
}

func TestNoteEnvelope(t *testing.T) {
	t.Parallel()
	got, err := EncodeNotes([][]byte{{0xaa, 0xbb, 0xcc}, {0xdd, 0xee, 0xff}})
	if want := "434c564b01020300aabbcc0300ddeeff"; err != nil || hex.EncodeToString(got) != want {
		t.Errorf("envelope is %x, want %s (%v)", got, want, err)
	}
	if none, err := EncodeNotes(nil); err != nil || none != nil {
		t.Errorf("no notes make an envelope of %d bytes (%v), want none", len(none), err)
	}
	back, err := ParseNotes(got)
	if diff := cmp.Diff([][]byte{{0xaa, 0xbb, 0xcc}, {0xdd, 0xee, 0xff}}, back); err != nil || diff != "" {
		t.Errorf("decoding returns other notes: %v %s", err, diff)
	}
	for name, in := range map[string]string{
		"another magic":         "434c564c01010100aa",
		"another version":       "434c564b02010100aa",
		"count zero":            "434c564b0100",
		"count three":           "434c564b0103010011010022010033",
		"a byte after the last": "434c564b01010100aabb",
		"a note cut short":      "434c564b01010200aa",
		"a length cut short":    "434c564b010101",
		"a header cut short":    "434c564b01",
		"a missing second note": "434c564b01020100aa",
	} {
		if _, err := ParseNotes(unhex(t, in)); err == nil {
			t.Errorf("an envelope with %s is accepted", name)
		}
	}
	if _, err := EncodeNotes(make([][]byte, 3)); err == nil {
		t.Error("three notes are encoded")
	}
	if _, err := EncodeNotes([][]byte{make([]byte, 1<<16)}); err == nil {
		t.Error("a note longer than its length prefix is encoded")
	}
}

func TestSizesAndNoteBounds(t *testing.T) {
	t.Parallel()
	pool := solPool(t)
	table := &LookupTable{Address: solana.PublicKey{7}, Addresses: pool.Constant()}
	longer := solPool(t)
	for _, order := range []*[]AccountRole{&longer.Profile.Accounts.Transact, &longer.Profile.Accounts.TransactSwap} {
		*order = append(slices.Clone(*order), AccountRole{Role: "extra0"}, AccountRole{Role: "extra1"})
	}
	tests := map[string]struct {
		pool        *Pool
		kind        Kind
		format      Format
		table       *LookupTable
		size, bound int
	}{
		"withdrawal, legacy":               {pool, KindWithdrawal, Legacy, nil, 975, 257},
		"swap, legacy":                     {pool, KindSwap, Legacy, nil, 1047, 185},
		"transfer, the payer as recipient": {pool, KindTransfer, Legacy, nil, 943, 289},
		"withdrawal, lookup table":         {pool, KindWithdrawal, V0, table, 887, 345},
		"swap, lookup table":               {pool, KindSwap, V0, table, 959, 273},
		"withdrawal, v1":                   {pool, KindWithdrawal, V1, nil, 943, 3153},
		"swap, v1":                         {pool, KindSwap, V1, nil, 1015, 3081},
		"transfer, v1":                     {pool, KindTransfer, V1, nil, 911, 3185},
		"v1 takes no lookup table":         {pool, KindWithdrawal, V1, table, 943, 3153},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			size, err := tt.pool.size(tt.kind, tt.format, tt.table)
			if err != nil || size != tt.size {
				t.Errorf("size is %d, want %d (%v)", size, tt.size, err)
			}
			if bound, err := tt.pool.NoteBound(tt.kind, tt.format, tt.table); err != nil || bound != tt.bound {
				t.Errorf("note bound is %d, want %d (%v)", bound, tt.bound, err)
			}
		})
	}
	if _, err := longer.NoteBound(KindWithdrawal, Legacy, nil); err == nil {
		t.Error("an account list with a role without an address has a note bound")
	}
	if _, err := pool.NoteBound("moon", Legacy, nil); err == nil {
		t.Error("an unknown kind has a note bound")
	}
}

func TestTenAccountsMakeLongerTransactions(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]int{KindWithdrawal: 1041, KindSwap: 1113} {
		pool := solPool(t)
		// Two further accounts, as another version of the program may require.
		extra := []AccountRole{{Role: "extra0"}, {Role: "extra1"}}
		c := &Call{Proof: make([]byte, ProofLength), Inputs: &PublicInputs{PublicAmount: -1, Nullifiers: [2][32]byte{{31: 1}, {31: 2}}}}
		c.Recipient = solana.PublicKey{1, 2}
		order := pool.Profile.Accounts.Transact
		if kind == KindSwap {
			c.Swap, order = &SwapTerms{}, pool.Profile.Accounts.TransactSwap
		}
		a, err := pool.addresses(solana.PublicKey{9}, c.Inputs, c.Destination)
		if err != nil {
			t.Fatal(err)
		}
		a["extra0"], a["extra1"] = solana.PublicKey{3}, solana.PublicKey{4}
		accounts, err := metas(append(slices.Clone(order), extra...), a)
		if err != nil {
			t.Fatal(err)
		}
		data, err := pool.Profile.Data(c)
		if err != nil {
			t.Fatal(err)
		}
		ix := solana.NewInstruction(pool.Profile.ProgramID, accounts, data)
		tx, err := solana.NewTransaction(append(Compute{}.Instructions(), ix), solana.Hash{}, solana.TransactionPayer(solana.PublicKey{9}))
		if err != nil {
			t.Fatal(err)
		}
		tx.Signatures = make([]solana.Signature, 1)
		raw, err := tx.MarshalBinary()
		if err != nil || len(raw) != want {
			t.Errorf("%s with ten accounts has %d bytes, want %d (%v)", kind, len(raw), want, err)
		}
	}
}

func TestCheckNotes(t *testing.T) {
	t.Parallel()
	wantRefusal(t, CheckNotes(make([][]byte, 3), 257), refusal.TooManyNotes, "3", "2")
	wantRefusal(t, CheckNotes([][]byte{{}}, 257), refusal.InvalidRequest, "encrypted_notes[0]")
	if err := CheckNotes([][]byte{make([]byte, 249)}, 257); err != nil {
		t.Errorf("an envelope of exactly the bound is refused: %v", err)
	}
	wantRefusal(t, CheckNotes([][]byte{make([]byte, 250)}, 257), refusal.NotesTooLarge, "258", "257")
	if err := CheckNotes(nil, 257); err != nil {
		t.Errorf("no notes are refused: %v", err)
	}
}

func TestInstructionLengths(t *testing.T) {
	t.Parallel()
	p := ShieldPoolV1()
	c := &Call{Proof: make([]byte, ProofLength), Inputs: new(PublicInputs)}
	data, err := p.Data(c)
	if err != nil || len(data) != 521 || data[0] != 0 {
		t.Errorf("Transact has %d bytes and tag %d, want 521 and 0 (%v)", len(data), data[0], err)
	}
	c.Swap = &SwapTerms{OutputMint: solana.PublicKey{1}, RecipientATA: solana.PublicKey{2}, MinOutput: 3}
	c.Notes = [][]byte{{1}}
	data, err = p.Data(c)
	if err != nil || len(data) != 593+9 || data[0] != 1 {
		t.Errorf("TransactSwap with a note of one byte has %d bytes and tag %d, want 602 and 1 (%v)", len(data), data[0], err)
	}
	back, err := p.ParseData(data)
	if diff := cmp.Diff(c.Swap, back.Swap); err != nil || diff != "" {
		t.Errorf("decoding returns other swap terms: %v %s", err, diff)
	}
	for name, in := range map[string][]byte{"nothing": nil, "an unknown tag": {9}, "a short Transact": data[:520], "a short TransactSwap": data[:592], "a cut envelope": data[:600]} {
		if _, err := p.ParseData(in); err == nil {
			t.Errorf("%s is decoded", name)
		}
	}
	if p.Leaves(data[:520]) != nil || p.Leaves(append([]byte{10}, make([]byte, 600)...)) != nil {
		t.Error("data that is no Transact has leaves")
	}
	if got := p.Leaves(data); got != nil {
		t.Errorf("all-zero commitments are leaves: %d", len(got))
	}
}

func TestExtDataBindsTheDestination(t *testing.T) {
	t.Parallel()
	dev, opaque := Development(), ShieldPoolV1()
	d := Destination{Recipient: solana.PublicKey{1, 2, 3}}
	in := &PublicInputs{PublicAmount: -1, ExtDataHash: ExtDataHash(d)}
	if in.ExtDataHash[0] != 0 {
		t.Error("the hash does not start with a zero byte, so it can exceed the field's modulus")
	}
	if !dev.BindsDestination(in, d) {
		t.Error("the bound destination is refused")
	}
	other := Destination{Recipient: solana.PublicKey{1, 2, 4}}
	if dev.BindsDestination(in, other) {
		t.Error("another destination is accepted")
	}
	if !opaque.BindsDestination(in, other) {
		t.Error("a profile without an ext data formula refuses a destination")
	}
	if swap := (Destination{Swap: &SwapTerms{MinOutput: 1}}); dev.BindsDestination(in, swap) || len(swap.Bytes()) != 72 {
		t.Error("a swap passes as a withdrawal")
	}
}

func TestCheckRecipient(t *testing.T) {
	t.Parallel()
	pool := solPool(t)
	payer := solana.MustPublicKeyFromBase58("7dJ4kqJqWv43Q6bQKtTLKHVsvWvHLKcipqmDzag8cVnL")
	wallet := solana.MustPublicKeyFromBase58("5LTXeoirbHGFyAWPctdYpYsuSDRmeBMemvuTZTMwiT9")
	in := &PublicInputs{PublicAmount: -1, Nullifiers: [2][32]byte{{31: 1}, {31: 2}}}
	if err := pool.CheckRecipient(payer, wallet, in); err != nil {
		t.Errorf("a wallet is refused: %v", err)
	}
	wantRefusal(t, pool.CheckRecipient(payer, payer, in), refusal.InvalidRecipient, "payer")
	wantRefusal(t, pool.CheckRecipient(payer, pool.Treasury, in), refusal.InvalidRecipient, "curve")
	vaults := solPool(t)
	vaults.Profile.AllowOffCurveRecipient = true
	wantRefusal(t, vaults.CheckRecipient(payer, vaults.Treasury, in), refusal.InvalidRecipient, "treasury")
	wantRefusal(t, vaults.CheckRecipient(payer, vaults.Profile.ProgramID, in), refusal.InvalidRecipient, "program")
	vault, _, err := solana.FindProgramAddress([][]byte{[]byte("vault")}, solana.SystemProgramID)
	if err != nil {
		t.Fatal(err)
	}
	if err := vaults.CheckRecipient(payer, vault, in); err != nil {
		t.Errorf("a vault is refused although the profile admits it: %v", err)
	}
}

func TestSwapStateRoundTrip(t *testing.T) {
	t.Parallel()
	s := &SwapState{Nullifier: [32]byte{1}, Lamports: 2, OutputMint: solana.PublicKey{3}, RecipientATA: solana.PublicKey{4}, MinOutput: 5, CreatedSlot: 6, TimeoutSlot: 206, Bump: 7}
	back, err := ParseSwapState(s.Bytes())
	if diff := cmp.Diff(s, back); err != nil || diff != "" || len(s.Bytes()) != SwapStateLength {
		t.Errorf("round trip of %d bytes changes the state: %v %s", len(s.Bytes()), err, diff)
	}
	if _, err := ParseSwapState(s.Bytes()[:160]); err == nil {
		t.Error("a short swap state is decoded")
	}
}

func TestBuiltInProfiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"shield-pool-v1", "development"} {
		p, err := BuiltIn(name)
		if err != nil || p.Name != name {
			t.Errorf("profile %s: %v", name, err)
		}
	}
	if _, err := BuiltIn("moon"); err == nil || !strings.Contains(err.Error(), "shield-pool-v1") {
		t.Errorf("an unknown profile returns %v, want an error that names the known ones", err)
	}
	if fmt.Sprint(Development().ExtData) == fmt.Sprint(ShieldPoolV1().ExtData) {
		t.Error("the development profile does not bind the destination")
	}
}
