package chain

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
)

// TestOldLagDoesNotCount: an old lag does not count, because an
// endpoint that is not asked cannot report that it has caught up.
func TestOldLagDoesNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEndpoints(t, newNetwork("a", "b"), endpointsNamed("a", "b"), nil)
		first := func() string { return e.candidates([]Role{RoleRead}, "getSlot", outbound.Read)[0].name }
		e.slots.ObserveBehind(0, 100, 100+e.maxLag, e.now())
		if got := first(); got != "a" {
			t.Errorf("endpoint %s is asked first, want a: its lag is within the limit", got)
		}
		e.slots.ObserveBehind(0, 100, 101+e.maxLag, e.now())
		if got := first(); got != "b" {
			t.Errorf("endpoint %s is asked first, want b: the lag of a exceeds the limit", got)
		}
		time.Sleep(2 * e.probe)
		if got := first(); got != "a" {
			t.Errorf("endpoint %s is asked first, want a: its lag is too old to count", got)
		}
	})
}
