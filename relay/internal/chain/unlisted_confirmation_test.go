package chain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// Some archives list no confirmationStatus. A note spent by another transaction would then never
// count as finally spent, and its submission would never end.
func TestCreationThatAnArchiveListsWithoutItsConfirmation(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		final bool // getTransaction knows it as finalized
		want  onchain.Commitment
	}{
		"is final when it is known as finalized": {true, onchain.Finalized},
		"is not final when it is not":            {false, onchain.Confirmed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testPool(t)
			maker := transact(t, pool, 5)
			n := newNetwork("a")
			n["a"].transaction = func(params string) reply {
				if strings.Contains(params, `"commitment":"finalized"`) && !test.final {
					return says("null")
				}
				return says(landed(maker, balances(accountsOf(t, maker))))
			}
			n["a"].page = func(params string) reply {
				if strings.Contains(params, `"before"`) {
					return says("[]")
				}
				return says(fmt.Sprintf(`[{"signature":%q,"slot":7,"err":null,"confirmationStatus":null}]`, sigA))
			}
			e, _ := newEndpoints(t, n, of("a"), func(o *EndpointsOptions) { o.Timeout = time.Second })
			got, err := e.FindCreation(t.Context(), pool, [32]byte{31: 5})
			if err != nil || got == nil {
				t.Fatalf("creation is %+v, %v", got, err)
			}
			if got.Confirmation != test.want {
				t.Errorf("it is %s, want %s", got.Confirmation, test.want)
			}
		})
	}
}
