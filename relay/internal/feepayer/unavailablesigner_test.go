package feepayer

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// awayKey is a key in a key service that does not sign.
type awayKey struct{ *Key }

func (awayKey) Available() bool { return false }

// The reason for a refusal is the signer only if its payer could pay.
func TestPickWithoutASigner(t *testing.T) {
	t.Parallel()
	const cost, minimum = 5000, 1_000_000_000
	tests := map[string]struct {
		away, file uint64 // lamports of the payer whose signer is away, and of one with a file
		endsWork   bool
		want       any // the refusal's code, the error or, without one, nil
	}{
		"another payer pays":                                     {2 * minimum, 2 * minimum, false, nil},
		"the only payer with funds cannot sign":                  {2 * minimum, 0, false, txmgr.ErrSignerUnavailable},
		"no payer has funds":                                     {0, 0, false, refusal.FeePayerEmpty},
		"a second leg below the minimum, which cannot sign":      {cost + shieldpool.RentExempt, 0, true, txmgr.ErrSignerUnavailable},
		"a first leg below the minimum":                          {cost + shieldpool.RentExempt, 0, false, refusal.FeePayerEmpty},
		"a second leg that another payer below the minimum pays": {2 * minimum, cost + shieldpool.RentExempt, true, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPayers(t, &wallets{lamports: []uint64{test.away, test.file}, slot: 1}, func(o *Options) {
				o.Keys, o.MinBalance = []txmgr.Payer{awayKey{keyFromSeed(t, 1)}, keyFromSeed(t, 2)}, minimum
			})
			refresh(t, p)
			payer, err := p.Pick(t.Context(), cost, test.endsWork)
			switch want := test.want.(type) {
			case nil:
				if err != nil || payer.PublicKey() != keyFromSeed(t, 2).PublicKey() {
					t.Errorf("error %v, want the payer with a file", err)
				}
			case refusal.Code:
				checkCode(t, err, want)
			case error:
				if !errors.Is(err, want) {
					t.Errorf("error %v, want %v", err, want)
				}
			}
		})
	}
}

// Work is accepted while a signer is away, because it can wait for it.
func TestReadyWithoutASigner(t *testing.T) {
	t.Parallel()
	p := newPayers(t, &wallets{lamports: []uint64{1 << 40}, slot: 1}, func(o *Options) { o.Keys = []txmgr.Payer{awayKey{keyFromSeed(t, 1)}} })
	refresh(t, p)
	if err := p.Ready(t.Context(), 5000); err != nil {
		t.Errorf("error %v, want none", err)
	}
	if diff := cmp.Diff(StateSignerUnavailable, p.Balances()[0].State); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}
