package chain

import (
	"testing"
	"testing/synctest"

	"github.com/relaypool/relaypool/relay/onchain"
)

// A lane accepts, refuses, and fails: nothing follows from its answers, and it is asked nothing.
func TestALaneGetsOnlyTransactionsAndProvesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "lane", "b")
		endpoints := endpointsNamed("a", "lane", "b")
		endpoints[1].Roles = []Role{RoleLane}
		e, _ := newEndpoints(t, n, endpoints, nil)
		startPolling(t, e, n, "a", "b")
		e.SendLane(t.Context(), "lane", raw, true)
		e.SendLane(t.Context(), "unknown", raw, true)
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := `["AQID",{"encoding":"base64","maxRetries":0,"preflightCommitment":"confirmed","skipPreflight":true}]`
		if got := n["lane"].params("sendTransaction"); got != want {
			t.Errorf("the lane received %s, want %s", got, want)
		}
		if got := n["a"].count("sendTransaction") + n["b"].count("sendTransaction"); got != 0 {
			t.Errorf("the other endpoints received %d transactions, want none", got)
		}
		// The lane accepts what both endpoints refuse.
		for _, name := range []string{"a", "b"} {
			n[name].set("sendTransaction", preflight(`"BlockhashNotFound"`))
		}
		if err := e.Send(t.Context(), raw, onchain.Sending{First: true}, 0); err == nil {
			t.Error("a send that every submit endpoint refused succeeded")
		}
		if got := n["lane"].count("sendTransaction"); got != 1 {
			t.Errorf("the lane received %d transactions, want the 1 that was meant for it", got)
		}
		if got := e.Status(); len(got) != 2 {
			t.Errorf("the health of %d endpoints is reported, want that of the 2 that are no lane", len(got))
		}
		for _, method := range []string{"getGenesisHash", "getSlot", methodBlockhash, "getHealth"} {
			if got := n["lane"].count(method); got != 0 {
				t.Errorf("the lane was asked %d times for %s, want never", got, method)
			}
		}
	})
}

func TestALaneIsNoSecondEndpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "lane")
		endpoints := endpointsNamed("a", "lane")
		endpoints[1].Roles = []Role{RoleLane}
		e, _ := newEndpoints(t, n, endpoints, nil)
		n["a"].setSlot(100)
		startPolling(t, e, n, "a")
		if !e.Corroborated(100) {
			t.Error("the only RPC endpoint's slot waits for a lane to confirm it")
		}
	})
}
