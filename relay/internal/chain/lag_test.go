package chain

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
)

// TestAnEndpointThatLaggedIsAskedLastWhileThatIsNews: an endpoint that is no longer asked would
// otherwise lag for ever.
func TestAnEndpointThatLaggedIsAskedLastWhileThatIsNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEndpoints(t, newNetwork("a", "b"), of("a", "b"), nil)
		first := func() string { return e.candidates([]Role{RoleRead}, "getSlot", outbound.Read)[0].name }
		e.slots.Behind(0, 100, 100+e.maxLag, e.now())
		if got := first(); got != "a" {
			t.Errorf("asked first is %s, want a: it lags as far as is borne with", got)
		}
		e.slots.Behind(0, 100, 101+e.maxLag, e.now())
		if got := first(); got != "b" {
			t.Errorf("asked first is %s, want b: a lags", got)
		}
		time.Sleep(2 * e.probe)
		if got := first(); got != "a" {
			t.Errorf("asked first is %s, want a: that it lagged is no news any more", got)
		}
	})
}
