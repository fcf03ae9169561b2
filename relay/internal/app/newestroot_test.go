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
func catchUp(t *testing.T, own []string, refused map[string]any) (root [32]byte) {
	t.Helper()
	if refused["from_index"] != float64(len(own)) {
		t.Fatalf("the refusal has the leaves from %v on, want them from %d, where the client's end: %v", refused["from_index"], len(own), refused)
	}
	for _, l := range refused["leaves"].([]any) {
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
	if root = merkle.Bytes(&e); refused["next_index"] != float64(len(own)) || refused["current_root"] != hex.EncodeToString(root[:]) {
		t.Fatalf("the client's %d leaves have the root %x, the refusal has another: %v", len(own), root, refused)
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
	in.Root = catchUp(t, own, a.body)
	if a := withdraw(in); a.status != http.StatusOK {
		t.Fatalf("proven against the refusal's root, the withdrawal is answered %d %v, want 200", a.status, a.body)
	}

	t.Log("busy pool")
	own = s.listed(len(all) + 2)
	s.setFaults(relayEndpoint, droppedSend())
	paths := f.submitWithdrawals(s, roots/2)
	in = f.inputs(s, -sol, to)
	f.depositNotes(s)
	s.listed(len(own) + 2)
	eventually(t, "the newest leaves are in memory", func() bool { return s.relay.app.commitmentIndex.Status().Published == uint64(len(own)+2) })
	a = withdraw(in)
	wantRefused(t, a, http.StatusServiceUnavailable, "pool_busy", "newest root")
	catchUp(t, own, a.body)

	t.Log("stale root of an accepted submission")
	for range roots/2 - 1 {
		f.depositNotes(s)
	}
	s.setFaults(relayEndpoint)
	var status map[string]any
	eventually(t, "the submission fails", func() bool {
		status, _ = s.call(http.MethodGet, paths[0], nil).body["data"].(map[string]any)
		return status["status"] == "failed" && status["from_index"] != nil
	})
	if status["error_code"] != "root_not_found" {
		t.Fatalf("the submission ended as %v, want root_not_found", status)
	}
	catchUp(t, own, status)

	t.Log("a root that the tree never had")
	in.Root = [32]byte{31: 7}
	a = withdraw(in)
	wantRefused(t, a, http.StatusBadRequest, "root_not_found")
	if _, has := a.body["leaves"]; has {
		t.Errorf("the refusal has leaves after an unknown root: %v", a.body)
	}
}
