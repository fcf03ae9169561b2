package chain

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

func TestRentStaysWhenItCannotBeRead(t *testing.T) {
	t.Parallel()
	var account *onchain.Account
	var err error
	r := &RentRate{log: slog.New(slog.DiscardHandler), account: func(context.Context, solana.PublicKey) (*onchain.Account, error) { return account, err }}
	r.rate.Store(5080)
	for name, answer := range map[string]struct {
		account *onchain.Account
		err     error
	}{
		"no answer":      {nil, errors.New("timeout")},
		"no sysvar":      {nil, nil},
		"another layout": {&onchain.Account{Data: []byte{1}}, nil},
		"a rate of zero": {&onchain.Account{Data: make([]byte, 17)}, nil},
	} {
		account, err = answer.account, answer.err
		if got := r.Read(t.Context()); got == nil || r.Rate() != 5080 {
			t.Errorf("%s: the rate is %d with error %v, want 5080 and an error", name, r.Rate(), got)
		}
	}
}
