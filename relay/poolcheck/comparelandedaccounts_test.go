package poolcheck_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// landed is a transaction of the pool that makes the given call.
func landed(t *testing.T, p *shieldpool.Pool, c *shieldpool.Call) poolcheck.Landed {
	t.Helper()
	payer := wallet(t)
	ix, err := p.Instruction(payer, c)
	if err != nil {
		t.Fatal(err)
	}
	data, err := ix.Data()
	if err != nil {
		t.Fatal(err)
	}
	l := poolcheck.Landed{Signature: solana.Signature{1}, FeePayer: payer, Instructions: []poolcheck.Instruction{
		{Program: solana.ComputeBudget, Data: []byte{2}},
		{Program: ix.ProgramID(), Data: data},
	}}
	for _, a := range ix.Accounts() {
		l.Instructions[1].Accounts = append(l.Instructions[1].Accounts, a.PublicKey)
	}
	return l
}

func wallet(t *testing.T) solana.PublicKey {
	t.Helper()
	key, err := solana.NewRandomPrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key.PublicKey()
}

func TestAcceptedInstructionsAreComparedWithTheProfile(t *testing.T) {
	t.Parallel()
	p := pool(t, shieldpool.Development())
	call := func(amount int64) *shieldpool.Call {
		return &shieldpool.Call{Proof: make([]byte, shieldpool.ProofLength), Inputs: &shieldpool.PublicInputs{
			PublicAmount: amount, Nullifiers: [2][32]byte{{31: 1}, {31: 2}}, MintAddress: p.Mint.Field,
		}}
	}
	transfer := call(0)
	deposit := call(1_000_000_000)
	deposit.Inputs.Nullifiers = [2][32]byte{} // no inputs: both accounts are the same
	withdrawal := call(-1_000_000_000)
	withdrawal.Recipient = wallet(t)
	swap := call(-1_000_000_000)
	swap.Recipient = wallet(t)
	swap.Swap = &shieldpool.SwapTerms{OutputMint: wallet(t), RecipientATA: wallet(t), MinOutput: 5}
	tests := map[string]struct {
		call   *shieldpool.Call
		change func(*poolcheck.Instruction)
		isSwap bool   // the call is a TransactSwap
		want   string // the difference that is found; "" for nothing
	}{
		"a transfer":                  {transfer, func(*poolcheck.Instruction) {}, false, ""},
		"a deposit without inputs":    {deposit, func(*poolcheck.Instruction) {}, false, ""},
		"a withdrawal":                {withdrawal, func(*poolcheck.Instruction) {}, false, ""},
		"a swap":                      {swap, func(*poolcheck.Instruction) {}, true, ""},
		"another tag":                 {withdrawal, func(ix *poolcheck.Instruction) { ix.Data[0] = 99 }, false, "tag 99"},
		"another tag of a swap":       {swap, func(ix *poolcheck.Instruction) { ix.Data[0] = 99 }, true, "tag 99"},
		"an extra account":            {withdrawal, func(ix *poolcheck.Instruction) { ix.Accounts = append(ix.Accounts, solana.PublicKey{7}) }, false, "accounts"},
		"a missing account":           {withdrawal, func(ix *poolcheck.Instruction) { ix.Accounts = ix.Accounts[:len(ix.Accounts)-1] }, false, "accounts"},
		"another account as the pool": {withdrawal, func(ix *poolcheck.Instruction) { put(p, ix, shieldpool.RolePool, solana.PublicKey{7}) }, false, "another account at place"},
		"the pool as the recipient":   {withdrawal, func(ix *poolcheck.Instruction) { put(p, ix, shieldpool.RoleRecipient, p.Address) }, false, "pool at place"},
		"the payer as the pool":       {transfer, func(ix *poolcheck.Instruction) { put(p, ix, shieldpool.RolePool, payerOf(p, ix)) }, false, "payer at place"},
		"data that is too short":      {withdrawal, func(ix *poolcheck.Instruction) { ix.Data = ix.Data[:shieldpool.TransactLength-1] }, false, "none"},
		"another program":             {withdrawal, func(ix *poolcheck.Instruction) { ix.Program = solana.PublicKey{7} }, false, "none"},
	}
	for name, test := range tests {
		l := landed(t, p, test.call)
		test.change(&l.Instructions[1])
		checks := poolcheck.Compare(p, []poolcheck.Landed{l})
		own, other := checks[0], checks[1]
		if test.isSwap {
			own, other = other, own
		}
		if other.State != poolcheck.Unknown {
			t.Errorf("%s: the check %s is %+v, want it unknown", name, other.Name, other)
		}
		switch {
		case test.want == "none" && own.State != poolcheck.Unknown,
			test.want == "" && (own.State != poolcheck.OK || own.Found != "the same in 1 confirmed transactions"),
			test.want != "" && test.want != "none" && (own.State != poolcheck.Failed || !strings.Contains(own.Found, test.want) || !strings.Contains(own.Found, l.Signature.String())):
			t.Errorf("%s: the check %s is %+v, want %q found", name, own.Name, own, test.want)
		}
	}
}

// The first instruction that differs is reported, and all are counted.
func TestManyInstructionsAreComparedWithTheProfile(t *testing.T) {
	t.Parallel()
	p := pool(t, shieldpool.Development())
	transfer := &shieldpool.Call{Proof: make([]byte, shieldpool.ProofLength), Inputs: &shieldpool.PublicInputs{Nullifiers: [2][32]byte{{31: 1}}, MintAddress: p.Mint.Field}}
	all := []poolcheck.Landed{landed(t, p, transfer), landed(t, p, transfer), landed(t, p, transfer)}
	if got := poolcheck.Compare(p, all)[0]; got.State != poolcheck.OK || got.Found != "the same in 3 confirmed transactions" {
		t.Errorf("three equal instructions give %+v", got)
	}
	for i, tag := range []byte{77, 88} {
		all[i+1].Instructions[1].Data[0] = tag
		all[i+1].Signature = solana.Signature{tag}
	}
	if got := poolcheck.Compare(p, all)[0]; !strings.Contains(got.Found, "tag 77") || strings.Contains(got.Found, "tag 88") || !strings.HasSuffix(got.Found, solana.Signature{77}.String()) {
		t.Errorf("two different instructions give %+v, want only the first reported", got)
	}
}

func place(p *shieldpool.Pool, role shieldpool.Role) int {
	return slices.IndexFunc(p.Profile.Accounts.Transact, func(a shieldpool.AccountRole) bool { return a.Role == role })
}

func put(p *shieldpool.Pool, ix *poolcheck.Instruction, role shieldpool.Role, key solana.PublicKey) {
	ix.Accounts[place(p, role)] = key
}

func payerOf(p *shieldpool.Pool, ix *poolcheck.Instruction) solana.PublicKey {
	return ix.Accounts[place(p, shieldpool.RolePayer)]
}
