package report_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/drill/arena"
	"github.com/relaypool/relaypool/hack/drill/report"
	"github.com/relaypool/relaypool/hack/drill/schedule"
	"github.com/relaypool/relaypool/hack/drill/timeline"
	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// outcome returns the outcome of a drill that lost one submission.
func outcome() *arena.Outcome {
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	return &arena.Outcome{
		Events: []schedule.Event{{At: 5 * time.Second, For: time.Second, Kind: schedule.KillRelay}},
		Evidence: &verify.Evidence{
			Fees: shieldpool.Development().Fees,
			Records: []load.Record{{Requests: []load.Request{{Answers: []load.Answer{
				{Call: load.CallTransact, Status: 503, Code: "pool_busy"},
				{Call: load.CallTransact, Status: 202, RequestID: uuid.UUID{9}},
				{Call: load.CallStatus, Status: 200, RequestID: uuid.UUID{4}, At: start, SwapAnswer: load.SwapAnswer{Waits: "no_route"}},
				{Call: load.CallStatus, Status: 200, RequestID: uuid.UUID{4}, At: start.Add(time.Second), SwapAnswer: load.SwapAnswer{Waits: "swap_price"}},
				{Call: load.CallStatus, Status: 200, RequestID: uuid.UUID{4}, At: start.Add(2 * time.Second)},
			}}}}},
			Submissions: []verify.Submission{
				{ID: uuid.UUID{1}, State: "completed", Finalized: true, CreatedAt: start, CompletedAt: start.Add(2 * time.Second)},
				{ID: uuid.UUID{2}, State: "failed", Code: "root_not_found"},
				{ID: uuid.UUID{3}, State: "completed", Finalized: true, CreatedAt: start, CompletedAt: start.Add(2 * time.Second)},
				{ID: uuid.UUID{4}, Swap: &shieldpool.SwapTerms{MinOutput: 7}, State: "completed", Finalized: true, CreatedAt: start, CompletedAt: start.Add(2 * time.Second)},
			},
			Executions: []verify.Execution{
				{Swap: uuid.UUID{3}, State: "completed", Phase: "executed", CompletedAt: start.Add(5 * time.Second)},
				{Swap: uuid.UUID{4}, State: "completed", Phase: "refunded", Signature: solana.Signature{4}, Timeout: 300, CompletedAt: start.Add(90 * time.Second)},
			},
			Attempts:     []verify.Attempt{{Purpose: "execute"}, {Purpose: "refund"}, {Purpose: "execute"}},
			Transactions: []verify.Transaction{{Signature: solana.Signature{4}, Slot: 312}},
		},
		BasePrice: func(uint64) uint64 { return 7 },
		Router:    map[string]uint64{"short_output": 3},
		Exits:     []arena.Exit{{Relay: 1, Fault: "panic: it broke"}},
		Timeline:  timeline.Timeline{Title: "Drill with seed 5", Load: time.Minute},
		Clients:   load.Progress{Spends: 3},
	}
}

func TestReportNamesFaultsAndFiles(t *testing.T) {
	t.Parallel()
	r := report.Make(5, time.Minute, outcome())
	if r.Passed() {
		t.Error("a drill that lost a submission passed")
	}
	folder := t.TempDir()
	if err := r.Write(folder); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	r.Print(&text)
	for _, want := range []string{
		"seed 5", "CHECKS FAILED", "kill relay 1, for 1.0 s", "spends started", "failed with root_not_found", "refused with pool_busy",
		"FAILED  accepted-is-final", "09000000-0000-0000-0000-000000000000", "FAILED  orderly-exits", "relay 2 at", "panic: it broke",
		"nothing to examine", "passed  stale-root-is-true", filepath.Join(folder, "drill-5.svg"),
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	var written struct {
		Seed    uint64 `json:"seed"`
		Figures []struct {
			Name  string  `json:"name"`
			Value float64 `json:"value"`
		} `json:"figures"`
		Checks []verify.Result `json:"checks"`
	}
	raw, err := os.ReadFile(filepath.Join(folder, "drill-5.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &written); err != nil {
		t.Fatal(err)
	}
	figures := map[string]float64{}
	for _, f := range written.Figures {
		figures[f.Name] = f.Value
	}
	if written.Seed != 5 || figures["completed"] != 3 || figures["failed"] != 1 || figures["accepted to completed, median"] != 2 {
		t.Errorf("the JSON report has seed %d and figures %v, want seed 5, 3 completed, 1 failed and a median of 2", written.Seed, figures)
	}
	for name, want := range map[string]float64{
		"swaps executed": 1, "swaps refunded": 1, "swaps refunded though the usual price sufficed": 1, "swaps that strangers ended": 1, "of these, last waited for swap_price": 1, "of these, purpose execute": 2, "of these, purpose refund": 1,
		"accepted to tokens, longest": 5, "accepted to refund, longest": 90, "longest past a swap's timeout": 12, "router answers: short_output": 3,
	} {
		if figures[name] != want {
			t.Errorf("the figure %q is %g, want %g", name, figures[name], want)
		}
	}
	if len(written.Checks) != len(verify.Checks())+1 {
		t.Errorf("the JSON report has %d checks, want %d", len(written.Checks), len(verify.Checks())+1)
	}
	picture, err := os.ReadFile(filepath.Join(folder, "drill-5.svg"))
	if err != nil || !strings.Contains(string(picture), "CHECKS FAILED") {
		t.Errorf("the picture does not say that checks failed (error %v)", err)
	}
}

func TestPrintTruncatesFaultsButJSONHasAll(t *testing.T) {
	t.Parallel()
	o := outcome()
	for i := range byte(30) {
		o.Evidence.Submissions = append(o.Evidence.Submissions, verify.Submission{ID: uuid.UUID{0: 7, 15: i}, State: "pending"})
	}
	r := report.Make(5, time.Minute, o)
	var text strings.Builder
	r.Print(&text)
	if !strings.Contains(text.String(), "more, in the JSON report") {
		t.Error("the report does not say how many faults it leaves out")
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range byte(30) {
		if id := (uuid.UUID{0: 7, 15: i}).String(); !strings.Contains(string(raw), id) {
			t.Errorf("the JSON report does not name %s", id)
		}
	}
}
