package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// someSwaps stores three swaps: one waits for a price and times out in slot 100; one is
// under way and one executed, and both time out in slot 5000.
func someSwaps(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	noError(t, store.Migrate(t.Context(), pool, slog.New(slog.DiscardHandler)))
	s, err := store.New(pool)
	noError(t, err)
	ctx, w := t.Context(), uuid.New()
	_, err = s.Heartbeat(ctx, txmgr.Worker{ID: w}, time.Minute)
	noError(t, err)
	var landings []submission.Landing
	for n := range byte(3) {
		call := &shieldpool.Call{
			Proof: make([]byte, shieldpool.ProofLength), Inputs: &shieldpool.PublicInputs{PublicAmount: -9, Nullifiers: [2][32]byte{{31: n + 1}}},
			Destination: shieldpool.Destination{Recipient: solana.PublicKey{1}, Swap: &shieldpool.SwapTerms{MinOutput: 1}},
		}
		sub, err := s.Accept(ctx, &submission.Submission{ID: uuid.New(), Kind: call.Kind(), Call: call, ProofAEncoding: "plain"}, nil, &w)
		noError(t, err)
		landings = append(landings, submission.Landing{
			Lease: sub.Lease(), Outcome: submission.Outcome{Signature: solana.Signature{n}, Slot: 7, Timeout: []uint64{100, 5000, 5000}[n]},
		})
	}
	_, err = s.Complete(ctx, landings)
	noError(t, err)
	claimed, err := s.ClaimSwapExecutions(ctx, w, 10)
	noError(t, err)
	executed := false
	for _, c := range claimed {
		switch {
		case submission.FromJob(c).Swap.TimeoutSlot == 100:
			noError(t, s.Release(ctx, c.Lease, time.Hour, "swap_price"))
		case !executed:
			executed = true
			end := []submission.Landing{{Lease: c.Lease, Outcome: submission.Outcome{Signature: solana.Signature{9}, Slot: 8, Phase: submission.PhaseExecuted}}}
			_, err = s.Complete(ctx, end)
			noError(t, err)
			_, err = s.Finalize(ctx, end, nil)
			noError(t, err)
		}
	}
}

func TestSwaps(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool, err := store.Open(t.Context(), url, store.TLSFiles{}, 2)
	noError(t, err)
	t.Cleanup(pool.Close)
	urlFile := file(t, url)
	swaps := func(more ...string) (code int, out, stderr string) {
		return command(t, "", append([]string{"swaps", "--database-url-file=" + urlFile, "--log-level=warn"}, more...)...)
	}
	if code, _, stderr := swaps(); code != commandline.ExitFailed || !strings.Contains(stderr, "relay migrate") {
		t.Errorf("without a schema: exit code %d and %q, want what to do", code, stderr)
	}
	succeed(t, "", "migrate", "--database-url-file="+urlFile, "--log-level=warn")
	if code, out, _ := swaps("--overdue"); code != 0 || out != "No swap is unfinished.\n" {
		t.Errorf("without swaps: exit code %d and %q, want 0 and the text that there is none", code, out)
	}
	someSwaps(t, pool)

	type line struct {
		Phase     string `json:"phase"`
		WaitsFor  string `json:"waits_for"`
		SlotsLeft *int64 `json:"slots_left"`
		Final     bool   `json:"final"`
	}
	type report struct {
		Slot                uint64 `json:"slot"`
		Reckoned            bool   `json:"slot_reckoned"`
		Swaps               []line `json:"swaps"`
		Unfinished, Overdue int64
		ByPhase             map[string]int64 `json:"by_phase"`
	}
	read := func(wantCode int, more ...string) (r report) {
		t.Helper()
		code, out, stderr := swaps(append(more, "--json")...)
		if code != wantCode {
			t.Fatalf("%v: exit code %d: %s", more, code, stderr)
		}
		noError(t, json.Unmarshal([]byte(out), &r))
		return r
	}
	slots := func(n int64) *int64 { return &n }
	phases := map[string]int64{"funded": 2}
	// No slot has been observed yet, so nothing is overdue.
	want := report{Swaps: []line{{"funded", "swap_price", nil, false}, {"funded", "its worker", nil, false}}, Unfinished: 2, ByPhase: phases}
	if diff := cmp.Diff(want, read(0, "--overdue"), cmpopts.IgnoreFields(want, "Swaps")); diff != "" {
		t.Errorf("overdue swaps while no slot is known (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, read(0)); diff != "" {
		t.Errorf("all swaps while no slot is known (-want +got):\n%s", diff)
	}

	// 200 slots are 40 seconds.
	_, err = pool.Exec(t.Context(), `INSERT INTO sightings (pool, slot, seen_at) VALUES ($1, 1000, now() - interval '40 seconds')`, make([]byte, 32))
	noError(t, err)
	got := read(commandline.ExitFailed, "--overdue")
	if len(got.Swaps) != 1 || !got.Reckoned || got.Slot < 1200 || got.Slot > 1400 || got.Overdue != 1 || *got.Swaps[0].SlotsLeft != 100-int64(got.Slot) {
		t.Errorf("overdue swaps are %+v, want the one that times out in slot 100, at about slot 1200", got)
	}

	vk, err := os.ReadFile(verifyingKey)
	noError(t, err)
	net, err := localnet.New(localnet.Options{VerifyingKey: vk})
	noError(t, err)
	t.Cleanup(func() { noError(t, net.Close()) })
	rpc, err := net.Listen("127.0.0.1:0")
	noError(t, err)
	net.Finalize() // some slots
	got = read(0, "--all", "--rpc-url="+rpc)
	want = report{
		Slot: got.Slot, Unfinished: 2, ByPhase: phases,
		Swaps: []line{
			{"funded", "swap_price", slots(100 - int64(got.Slot)), false},
			{"funded", "its worker", slots(5000 - int64(got.Slot)), false},
			{"executed", "", nil, true},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Slot == 0 || got.Slot >= 100 {
		t.Errorf("all swaps at the chain's slot %d (-want +got):\n%s", got.Slot, diff)
	}
	code, out, stderr := swaps("--all", "--limit=1")
	for _, want := range []string{"waits for", "swap_price", "executed", solana.Signature{9}.String(), "Unfinished: 2 (2 funded)", "1 past the timeout slot", "At about slot 1"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("the table: exit code %d, and %q is missing: %s%s", code, want, out, stderr)
		}
	}
	if lines := strings.Count(out, "\n"); lines != 5 {
		t.Errorf("the table has %d lines, want 5: the header, an unfinished and an ended swap, an empty line and the totals:\n%s", lines, out)
	}
	if code, _, stderr := swaps("--rpc-url=http://127.0.0.1:1"); code != commandline.ExitFailed || !strings.Contains(stderr, "ask for the chain's slot") {
		t.Errorf("a chain that is down: exit code %d and %q, want 1 and the failed step", code, stderr)
	}
}

func TestWaitsFor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		swap store.ListedSwap
		want string
	}{
		"a stored reason":          {store.ListedSwap{State: submission.Processing, HeldBy: "swap_price", Live: 1, Leased: true}, "swap_price"},
		"a live attempt":           {store.ListedSwap{State: submission.Processing, Live: 1, Leased: true}, "confirmation"},
		"leased":                   {store.ListedSwap{State: submission.Processing, Leased: true}, "its worker"},
		"deferred":                 {store.ListedSwap{State: submission.Processing, DueIn: time.Second}, "its next try"},
		"due, not claimed":         {store.ListedSwap{State: submission.Pending}, "a worker"},
		"completed, not finalized": {store.ListedSwap{State: submission.Completed, Leased: true}, "finality"},
		"ended":                    {store.ListedSwap{State: submission.Completed, Final: true}, ""},
		"failed in the first leg":  {store.ListedSwap{State: submission.Failed, Final: true}, ""},
	}
	for name, test := range tests {
		if got := waitsFor(&test.swap); got != test.want {
			t.Errorf("%s: waits for %q, want %q", name, got, test.want)
		}
	}
}
