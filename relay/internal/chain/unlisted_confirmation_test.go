package chain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// Some archives list no confirmationStatus. Without it, a note spent by another transaction would
// never count as finally spent, and its submission would never end.
func TestCreationListedWithoutConfirmationStatus(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		finalized bool // getTransaction returns the transaction as finalized
		want      onchain.Commitment
	}{
		"finalized by getTransaction":      {true, onchain.Finalized},
		"only confirmed by getTransaction": {false, onchain.Confirmed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testPool(t)
			maker := transact(t, pool, 5)
			n := newNetwork("a")
			n["a"].transaction = func(params string) reply {
				if strings.Contains(params, `"commitment":"finalized"`) && !test.finalized {
					return resultReply("null")
				}
				return resultReply(landed(maker, balances(accountsOf(t, maker))))
			}
			n["a"].page = func(params string) reply {
				if strings.Contains(params, `"before"`) {
					return resultReply("[]")
				}
				return resultReply(fmt.Sprintf(`[{"signature":%q,"slot":7,"err":null,"confirmationStatus":null}]`, sigA))
			}
			e, _ := newEndpoints(t, n, endpointsNamed("a"), func(o *EndpointsOptions) { o.Timeout = time.Second })
			got, err := e.FindCreation(t.Context(), pool, [32]byte{31: 5})
			if err != nil || got == nil {
				t.Fatalf("creation is %+v, error %v, want a creation and no error", got, err)
			}
			if got.Confirmation != test.want {
				t.Errorf("confirmation is %s, want %s", got.Confirmation, test.want)
			}
		})
	}
}
