package app

import (
	"encoding/hex"
	"net/http"
	"testing"
	"time"

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

// catchUp returns the root of a client's leaves with those of an answer, which it checks. A refusal has the
// root as current_root, and GET /merkle-root as root.
func catchUp(t *testing.T, own []string, body map[string]any) (root [32]byte) {
	t.Helper()
	if body["from_index"] != float64(len(own)) {
		t.Fatalf("the answer has the leaves from %v on, want them from %d, where the client's end: %v", body["from_index"], len(own), body)
	}
	for _, l := range body["leaves"].([]any) {
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
	want := body["current_root"]
	if want == nil {
		want = body["root"]
	}
	if root = merkle.Bytes(&e); body["next_index"] != float64(len(own)) || want != hex.EncodeToString(root[:]) {
		t.Fatalf("the client's %d leaves have the root %x, the answer has another: %v", len(own), root, body)
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
	withdraw := func(in *shieldpool.PublicInputs) (a *answer) {
		body := submissionBody(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String()})
		// When this machine stops for a moment, the relay takes its node for one that is behind.
		eventually(t, "the relay can decide about the root", func() bool {
			a = s.call(http.MethodPost, "/transact", body)
			return a.body["code"] != "chain_unavailable"
		})
		return a
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

// A client learns what the fleet's own submissions appended before it is confirmed, and its proof against
// that root lands.
func TestAProcessedRootIsProvenAgainstBeforeItIsConfirmed(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, slotDuration: time.Second})
	s.waitHealthy()
	f.depositNotes(s)
	s.listed(2)
	var processed *answer
	var sent []string
	for unconfirmed := 0; unconfirmed == 0; { // 0 when this machine stopped for some slots
		if len(sent) == 5 {
			t.Fatal("five withdrawals were told only when they were confirmed")
		}
		sent = append(sent, f.submitWithdrawals(s, 1)...)
		eventually(t, "the withdrawal's leaves are processed", func() bool {
			processed = s.call(http.MethodGet, "/merkle-root?commitment=processed", nil)
			return processed.status == http.StatusOK && processed.body["next_index"] == float64(2+2*len(sent))
		})
		unconfirmed = len(processed.body["leaves"].([]any))
	}
	to := newKey(t).PublicKey()
	in := f.inputs(s, -sol, to)
	confirmed := int(processed.body["from_index"].(float64))
	in.Root = catchUp(t, s.listed(confirmed)[:confirmed], processed.body)
	body := submissionBody(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String()})
	if a := s.call(http.MethodPost, "/transact", body); a.status != http.StatusOK {
		t.Fatalf("proven against a processed root, the withdrawal is answered %d %v, want 200", a.status, a.body)
	}
	s.waitCompleted(sent)
	all := s.listed(4 + 2*len(sent))
	eventually(t, "all leaves are confirmed", func() bool {
		processed = s.call(http.MethodGet, "/merkle-root?commitment=processed", nil)
		return processed.body["from_index"] == float64(len(all))
	})
	catchUp(t, all, processed.body)
}
