package bank_test

import (
	"encoding/hex"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

type solanaKey = solana.PrivateKey

// TestRentEqualsMainnetMinimumBalances checks the minimum balances that chain explorers show at this rate.
func TestRentEqualsMainnetMinimumBalances(t *testing.T) {
	t.Parallel()
	for size, want := range map[uint64]uint64{0: 650_240, 161: 1_468_120, 165: 1_488_440} {
		if got := bank.RentExemption(size); got != want {
			t.Errorf("an account of %d bytes needs %d lamports, want %d", size, got, want)
		}
	}
}

func TestTheRentSysvarHasTheRate(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	sysvar := func() (data string) {
		l.Read(bank.Processed, func(v bank.View) { data = hex.EncodeToString(v.Account(solana.SysVarRentPubkey).Data) })
		return data
	}
	if got := sysvar(); got != "d813000000000000"+"000000000000f03f"+"32" {
		t.Errorf("the sysvar has %s, want 5080, 1.0 and 50", got)
	}
	l.SetRent(6960)
	if got := sysvar(); got[:16] != "d813000000000000" {
		t.Errorf("the open block has %s, want the rate of before", got)
	}
	l.Advance(1)
	if got := sysvar(); got[:16] != "301b000000000000" {
		t.Errorf("the next block has %s, want the rate 6960", got)
	}
}

func TestAnAccountMayStayBelowRentThatHasRisen(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.mustLand(key("faucet"), transferFrom("faucet", "poor", bank.RentExemption(0)))
	l.SetRent(6960)
	l.Advance(1)
	l.mustLand(key("faucet"), transferFrom("faucet", "poor", 1)) // it gains and is still below
	tests := map[string]struct {
		to     string
		amount uint64
		want   string
	}{
		"a new account needs the new minimum":        {"new", bank.RentExemption(0), `{"InsufficientFundsForRent":{"account_index":1}}`},
		"a new account with the new minimum is made": {"rich", bank.Rent(6960).Exemption(0), ""},
	}
	for name, test := range tests {
		tx := l.sign(l.blockhash(bank.Processed), []solanaKey{key("faucet")}, transferFrom("faucet", test.to, test.amount))
		landed, err := l.Submit(tx)
		got := ""
		if err != nil {
			got = wire(t, err)
		}
		if !landed || got != test.want {
			t.Errorf("%s: landed %v with %s, want %s", name, landed, got, test.want)
		}
	}
}
