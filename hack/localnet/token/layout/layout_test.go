package layout_test

import (
	"bytes"
	"testing"

	bin "github.com/gagliardetto/binary"
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/token/layout"
)

func filled(b byte) solana.PublicKey {
	return solana.PublicKeyFromBytes(bytes.Repeat([]byte{b}, solana.PublicKeyLength))
}

func pointer[T any](v T) *T { return &v }

// The bytes that the token program's own tests publish for these values.
func TestTheLayoutIsTheTokenPrograms(t *testing.T) {
	t.Parallel()
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, solana.PublicKeyLength) }
	mint := layout.Mint{
		Authority: pointer(filled(1)), Supply: 42, Decimals: 7, Initialized: true, FreezeAuthority: pointer(filled(2)),
	}
	wantMint := bytes.Join([][]byte{{1, 0, 0, 0}, key(1), {42, 0, 0, 0, 0, 0, 0, 0, 7, 1, 1, 0, 0, 0}, key(2)}, nil)
	if diff := cmp.Diff(wantMint, mint.Bytes()); diff != "" {
		t.Errorf("mint (-want +got):\n%s", diff)
	}
	account := layout.Account{
		Mint: filled(1), Owner: filled(2), Amount: 3, Delegate: pointer(filled(4)), State: layout.Frozen,
		Native: pointer(uint64(5)), Delegated: 6, CloseAuthority: pointer(filled(7)),
	}
	wantAccount := bytes.Join([][]byte{
		key(1), key(2), {3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, key(4),
		{2, 1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, key(7),
	}, nil)
	if diff := cmp.Diff(wantAccount, account.Bytes()); diff != "" {
		t.Errorf("account (-want +got):\n%s", diff)
	}
}

// TestAnotherLibraryReadsTheSame writes with this package and reads with
// solana-go and back.
func TestAnotherLibraryReadsTheSame(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]layout.Account{
		"a plain account":   {Mint: filled(1), Owner: filled(2), Amount: 1 << 60, State: layout.Initialized},
		"with everything":   {Mint: filled(1), Owner: filled(2), Delegate: pointer(filled(3)), State: layout.Frozen, Native: pointer(uint64(9)), Delegated: 4, CloseAuthority: pointer(filled(5))},
		"nothing but zeros": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var other token.Account
			if err := other.UnmarshalWithDecoder(bin.NewBinDecoder(want.Bytes())); err != nil {
				t.Fatal(err)
			}
			if other.Mint != want.Mint || other.Owner != want.Owner || other.Amount != want.Amount ||
				byte(other.State) != byte(want.State) || other.DelegatedAmount != want.Delegated ||
				!cmp.Equal(other.Delegate, want.Delegate) || !cmp.Equal(other.IsNative, want.Native) ||
				!cmp.Equal(other.CloseAuthority, want.CloseAuthority) {
				t.Errorf("solana-go reads %+v, want %+v", other, want)
			}
			got, err := layout.ParseAccount(want.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("read back (-want +got):\n%s", diff)
			}
		})
	}
	for name, want := range map[string]layout.Mint{
		"a mint that nobody governs": {Supply: 5, Decimals: 9, Initialized: true},
		"a mint with authorities":    {Authority: pointer(filled(1)), Decimals: 6, Initialized: true, FreezeAuthority: pointer(filled(2))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var other token.Mint
			if err := other.UnmarshalWithDecoder(bin.NewBinDecoder(want.Bytes())); err != nil {
				t.Fatal(err)
			}
			if other.Supply != want.Supply || other.Decimals != want.Decimals || other.IsInitialized != want.Initialized ||
				!cmp.Equal(other.MintAuthority, want.Authority) || !cmp.Equal(other.FreezeAuthority, want.FreezeAuthority) {
				t.Errorf("solana-go reads %+v, want %+v", other, want)
			}
			got, err := layout.ParseMint(want.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("read back (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNoTokenAccountIsRefused(t *testing.T) {
	t.Parallel()
	account, mint := (&layout.Account{}).Bytes(), (&layout.Mint{}).Bytes()
	with := func(data []byte, at int, b byte) []byte {
		data = bytes.Clone(data)
		data[at] = b
		return data
	}
	for name, data := range map[string][]byte{
		"too short":                     account[1:],
		"too long":                      append(bytes.Clone(account), 0),
		"an unknown state":              with(account, 108, 3),
		"a broken delegate":             with(account, 72, 2),
		"a broken reserve":              with(account, 109, 2),
		"a broken close authority":      with(account, 130, 1),
		"a mint":                        mint,
		"a tag of more than a byte's 1": with(account, 73, 1),
	} {
		if _, err := layout.ParseAccount(data); err == nil {
			t.Errorf("an account that is %s is accepted", name)
		}
	}
	for name, data := range map[string][]byte{
		"too short":                   mint[1:],
		"neither initialised nor not": with(mint, 45, 2),
		"of a broken authority":       with(mint, 0, 2),
		"of a broken freeze one":      with(mint, 46, 2),
		"an account":                  account,
	} {
		if _, err := layout.ParseMint(data); err == nil {
			t.Errorf("a mint that is %s is accepted", name)
		}
	}
}
