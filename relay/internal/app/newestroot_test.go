package app

import (
	"encoding/hex"
	"net/http"
	"testing"

	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// listed returns the commitments that the relay serves, once there are so many.
func (s *fixture) listed(n int) (leaves []string) {
	s.t.Helper()
	eventually(s.t, "the relay serves all leaves", func() bool {
		list, _ := s.call(http.MethodGet, "/commitments", nil).body["commitments"].([]any)
		leaves = nil
		for _, entry := range list {
			leaves = append(leaves, entry.(map[string]any)["commitment"].(string))
		}
		return len(leaves) >= n
	})
	return leaves
}

// catchUp returns the root of a client's leaves with those of a refusal, which it checks.
func catchUp(t *testing.T, own []string, a *answer) (root [32]byte) {
	t.Helper()
	if a.body["from_index"] != float64(len(own)) {
		t.Fatalf("the refusal has the leaves from %v on, want them from %d, where the client's end: %v", a.body["from_index"], len(own), a.body)
	}
	for _, l := range a.body["leaves"].([]any) {
		own = append(own, l.(string))
	}
	tree := merkle.NewTree()
	for _, l := range own {
		raw, err := hex.DecodeString(l)
		must(t, err)
		e, err := merkle.FromBytes([32]byte(raw))
		must(t, err)
		must(t, tree.Append(&e))
	}
	e := tree.Root()
	if root = merkle.Bytes(&e); a.body["next_index"] != float64(len(own)) || a.body["current_root"] != hex.EncodeToString(root[:]) {
		t.Fatalf("the client's %d leaves have the root %x, the refusal has another: %v", len(own), root, a.body)
	}
	return root
}

// A client whose root is refused proves anew with what the refusal has, without another request.
func TestARefusalHasTheLeavesThatItsClientLacks(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	const roots = 12
	s := newFixture(t, fixtureOptions{vk: vk, rootHistory: roots, endpoints: []string{relayEndpoint}, changeConfig: func(c *config.Serve) { c.RootHistorySize = roots }})
	s.waitHealthy()
	f.depositNotes(s)
	own := s.listed(2)
	to := newKey(t).PublicKey()
	withdraw := func(in *shieldpool.PublicInputs) *answer {
		return s.call(http.MethodPost, "/transact", submissionBody(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String()}))
	}

	t.Log("stale root")
	in := f.inputs(s, -sol, to)
	for range roots / 2 {
		f.depositNotes(s)
	}
	all := s.listed(2 + roots)
	eventually(t, "the newest leaves are in memory", func() bool { return s.relay.app.commitmentIndex.Status().Published == 2+roots })
	a := withdraw(in)
	wantRefused(t, a, http.StatusBadRequest, "root_not_found", "RootNotFound")
	in.Root = catchUp(t, own, a)
	if a := withdraw(in); a.status != http.StatusOK {
		t.Fatalf("proven against the refusal's root, the withdrawal is answered %d %v, want 200", a.status, a.body)
	}

	t.Log("busy pool")
	own = s.listed(len(all) + 2)
	s.setFaults(relayEndpoint, droppedSend())
	f.submitWithdrawals(s, roots/2)
	in = f.inputs(s, -sol, to)
	f.depositNotes(s)
	s.listed(len(own) + 2)
	eventually(t, "the newest leaves are in memory", func() bool { return s.relay.app.commitmentIndex.Status().Published == uint64(len(own)+2) })
	a = withdraw(in)
	wantRefused(t, a, http.StatusServiceUnavailable, "pool_busy", "newest root")
	catchUp(t, own, a)
	s.setFaults(relayEndpoint)

	t.Log("a root that the tree never had")
	in.Root = [32]byte{31: 7}
	a = withdraw(in)
	wantRefused(t, a, http.StatusBadRequest, "root_not_found")
	if _, has := a.body["leaves"]; has {
		t.Errorf("the refusal has leaves after an unknown root: %v", a.body)
	}
}
