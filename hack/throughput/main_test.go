package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/throughput/report"
	"github.com/relaypool/relaypool/hack/throughput/stand"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == readsArgument {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestEveryPartMeasures runs a short benchmark: every part, with few rows, for a second each.
func TestEveryPartMeasures(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	_ = os.Getenv("RELAYPOOL_SOURCES") // the cached result of a test that builds programs holds until this changes
	state, err := os.MkdirTemp("", "relaypool-bench-")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	s := &settings{
		parts: relayParts(), rounds: 1, window: time.Second, processes: []int{1, 2}, rows: []int{20}, out: out, profile: true, page: filepath.Join(out, "page.md"),
		sizes: sizes{
			rate: 10, carry: 10, accept: 4, acceptRequests: 150, clients: []int{1, 2}, saturating: 2, forgedRequests: 128, readRate: 20, provingClients: 4, swapRate: 4, swaps: 30,
			flight: 20, leaves: 2500, warm: 500 * time.Millisecond, acceptWindow: time.Second,
		},
	}
	if err := measure(t.Context(), s, folders{root: filepath.Join("..", ".."), state: state}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read report.Report
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]int)
	for _, g := range read.Groups {
		rows[g.Title] = len(g.Rows)
		for _, row := range g.Rows {
			checkRow(t, g, row)
		}
	}
	want := map[string]int{
		"Of that the endpoint's simulation, mean, at 10 submissions a second": 2, "Bare checks of processor time per steady submission": 2,
		"Processor time per steady submission, relays": 2, "Processor time per steady submission, Postgres": 2,
		"Processor time per steady submission, local chain and clients":              2,
		"CPU used by other programs, percent, while steady submissions are measured": 2,
		"RPC calls per submission at 20 a second":                                    2, "RPC calls per steady submission": 2, "SQL statements per steady submission": 2,
		"Accepted to first send, p50, at 10 submissions a second": 2, "Accepted to first send, p95, at 10 submissions a second": 2,
		"Accepted to first send, p50, at 10 submissions a second, in bare checks": 2, "Accepted to first send, p95, at 10 submissions a second, in bare checks": 2,
		"Accepted to first send, p99, at 10 submissions a second, in bare checks": 2,
		"Accepted to first send, p99, at 10 submissions a second":                 2, "Request to confirmed outcome, p50, at 10 submissions a second": 2,
		"Confirmed submissions per second, long root history": 2, "Processor time per confirmed submission, relays": 2,
		"Processor time per confirmed submission, Postgres": 2, "Processor time per confirmed submission, local chain and clients": 2,
		"CPU used by other programs, percent, while confirmed submissions are measured": 2,
		"RPC calls per confirmed submission":                                            2, "SQL statements per confirmed submission": 2,
		"Accepted asynchronously per second, every proof verified": 2, "Processor time per accepted submission, relays": 2,
		"Processor time per accepted submission, Postgres": 2, "Processor time per accepted submission, local chain and clients": 2,
		"CPU used by other programs, percent, while accepted submissions are measured": 2,
		"RPC calls per accepted submission":                                            2, "SQL statements per accepted submission": 2,
		"Bare checks of processor time per accepted submission":                              2,
		"Processor time of relays and Postgres per request, flood of true proofs":            1,
		"Processor time of relays and Postgres per request, flood of one forged proof in 16": 1,
		"Processor time of relays and Postgres per request, flood of forged proofs":          1,
		"Processor time of a flood of one forged proof in 16, in floods of true ones":        1,
		"Processor time of a flood of forged proofs, in floods of true ones":                 1,
		"Confirmed per second with 20 clients, percent of the rate with 2":                   1,
		"Confirmed per second, concurrency 256, 2 clients":                                   1,
		"Confirmed per second, concurrency 256, 20 clients":                                  1,
		"GET /health meanwhile, p99":                                                         1, "GET /merkle-root meanwhile, p99": 1, "GET /status/{id} meanwhile, p99": 1,
		"Confirmed per second": 2, "Confirmed, request to confirmed outcome, p50": 2,
		"Accepted asynchronously per second": 2, "Accepted asynchronously, request to acceptance, p50": 2,
		"Confirmed submissions per second, root history 100": 2, "Requests refused (prove again or retry later), percent, root history 100": 2,
		"Swap, from submission to tokens, p50, at 4 a second": 2, "Swap, from submission to tokens, p95, at 4 a second": 2,
		"Swap, first leg: accepted to confirmed, p50, at 4 a second": 2, "Swap, first leg: accepted to confirmed, p95, at 4 a second": 2,
		"Swap, price: first leg confirmed to the execution signed, p50, at 4 a second": 2, "Swap, price: first leg confirmed to the execution signed, p95, at 4 a second": 2,
		"Swap, execution: signed to confirmed, p50, at 4 a second": 2, "Swap, execution: signed to confirmed, p95, at 4 a second": 2,
		"Executed swaps per second, long root history": 2, "Processor time per executed swap, relays": 2,
		"Processor time per executed swap, Postgres": 2, "Processor time per executed swap, local chain and clients": 2,
		"CPU used by other programs, percent, while executed swaps are measured": 2,
		"RPC calls per executed swap":                                            2, "SQL statements per executed swap": 2, "Router calls per executed swap": 2,
		"Live heap and stacks of a submission in flight": 1, "The same while its client waits": 1,
		"Memory of a relay process (resident)": 2, "Memory of a relay process (resident), idle, after some work": 1,
		"Of that its own: without the pages of files, such as the binary, which processes share": 1,
		"Bare check of four pairs, gnark-crypto, one core":                                       1,
		"Bare checks of processor time per confirmed submission":                                 2,
		"Bare checks of processor time per executed swap":                                        2,
	}
	want["Leaves read from the chain a second, first start"], want["Processor time per leaf read from the chain"] = 1, 3
	want["Start of a relay on a database with all leaves, to ready with the list"] = 1
	want["Memory of the list, resident, once read in each encoding, beyond a relay without leaves"] = 1
	if slices.ContainsFunc(read.Notes, func(note string) bool { return strings.HasPrefix(note, "The list beside nginx") }) {
		for _, encoding := range []string{"JSON", "zstd"} {
			for _, clients := range []string{"1 client", "8 clients", "32 clients"} {
				want[fmt.Sprintf("Full list, %s, %s, of nginx's speed", encoding, clients)] = 1
			}
		}
		for _, clients := range []string{"1 client", "32 clients"} {
			want["Tail of 100 leaves, "+clients+", of nginx's speed"], want["Tail of 100 leaves, unchanged (304), "+clients+", of nginx's speed"] = 1, 1
		}
		want["Speed of the list, MB/s"], want["Speed of the list, requests/s"] = 12, 8
	}
	for title := range rows {
		if bytes.HasPrefix([]byte(title), []byte("Estimated rate ")) {
			delete(rows, title) // its title has the number of cores
		}
	}
	if len(read.Sections) != 1 || !strings.Contains(read.Sections[0], "|verification of proofs|") {
		t.Errorf("sections %q, want one with the verification of proofs", read.Sections)
	}
	if diff := cmp.Diff(rows, want); diff != "" {
		t.Errorf("number of set-ups by title (-got +want):\n%s", diff)
	}
	for _, name := range []string{"results.svg", "page.md", "profiles/relay-carry-1-20.cpu.pprof", "profiles/relay-carry-1-20.allocs.pprof", "profiles/chain-carry-1-20.cpu.pprof", "profiles/statements-carry-1-20.txt"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, want a file with content", name, err)
		}
	}
}

// checkRow checks the properties of a row on any machine.
func checkRow(t *testing.T, g *report.Group, row *report.Row) {
	t.Helper()
	if len(row.Values) != 1 {
		t.Errorf("%s, %s: %d values, want one for one round", g.Title, row.Label, len(row.Values))
		return
	}
	v := row.Values[0]
	if strings.HasPrefix(g.Title, "CPU used by other programs") {
		return // there may be none
	}
	switch g.Title {
	case "Memory of the list, resident, once read in each encoding, beyond a relay without leaves", "Requests refused (prove again or retry later), percent, root history 100", "Live heap and stacks of a submission in flight", "The same while its client waits":
		// There may be no refusal, and with so few submissions or leaves the memory figures are noise.
	case "Router calls per executed swap", "RPC calls per accepted submission", "SQL statements per accepted submission", "Processor time per accepted submission, Postgres":
		// All may have been done before so short a window, or take less than a hundredth of a second.
	default:
		if v <= 0 {
			t.Errorf("%s, %s: %g, want more than 0", g.Title, row.Label, v)
		}
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want []string
	}{
		"all parts: processes and rows are not changed together": {
			nil, []string{
				"latency: 1 process, 1000 rows", "carry: 1 process, 1000 rows", "accept: 1 process, 1000 rows",
				"latency: 4 processes, 1000 rows", "carry: 4 processes, 1000 rows", "accept: 4 processes, 1000 rows",
				"latency: 1 process, 100000 rows", "carry: 1 process, 100000 rows", "accept: 1 process, 100000 rows",
				"latency: 1 process, 1000000 rows", "carry: 1 process, 1000000 rows", "accept: 1 process, 1000000 rows",
				"forged: 1 process, 1000 rows", "overload: 1 process, 1000 rows", "clients: 1 process, 1000 rows",
				"root-history: 1 process, 1000 rows", "root-history: 4 processes, 1000 rows", "swaps: 1 process, 1000 rows", "swaps: 4 processes, 1000 rows", "memory: 1 process, 1000 rows",
				"list: 0 leaves", "list: 1000000 leaves",
			},
		},
		"one part": {[]string{"-only", "root-history", "-processes", "2"}, []string{"root-history: 2 processes, 1000 rows"}},
		"two parts with other numbers": {
			[]string{"-only", "carry,accept", "-processes", "1,2", "-rows", "7"},
			[]string{"carry: 1 process, 7 rows", "accept: 1 process, 7 rows", "carry: 2 processes, 7 rows", "accept: 2 processes, 7 rows"},
		},
		"the cryptography alone": {[]string{"-only", "crypto"}, nil},
		"the operator alone":     {[]string{"-only", "operator", "-pools", "2", "-rest", "10s"}, nil},
		"all parts of the relay": {
			[]string{"-only", "relay", "-processes", "1", "-rows", "1000"},
			[]string{"latency: 1 process, 1000 rows", "carry: 1 process, 1000 rows", "accept: 1 process, 1000 rows", "forged: 1 process, 1000 rows", "overload: 1 process, 1000 rows", "clients: 1 process, 1000 rows", "root-history: 1 process, 1000 rows", "swaps: 1 process, 1000 rows", "memory: 1 process, 1000 rows", "list: 0 leaves", "list: 1000000 leaves"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := parse(tc.args)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, session := range s.sessions() {
				got = append(got, fmt.Sprintf("%s: %s", session.part, session.label))
			}
			if diff := cmp.Diff(got, tc.want); diff != "" {
				t.Errorf("sessions (-got +want):\n%s", diff)
			}
		})
	}
}

func TestOnlyTheRootHistoryHasLimits(t *testing.T) {
	t.Parallel()
	s, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range s.sessions() {
		setup := session.setup
		if bound := session.part == partRootHistory; setup.Limits != bound || (setup.RootHistorySize == programRootHistory) != (bound || session.part == partList) {
			t.Errorf("%s, %s: root history %d, limits %v; want 100 and limits only for the part root-history", session.part, session.label, setup.RootHistorySize, setup.Limits)
		}
		if setup == (stand.Setup{}) {
			t.Errorf("%s has no set-up", session.part)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"an unknown part":                {"-only", "latency,x"},
		"no rounds":                      {"-rounds", "0"},
		"a window below a second":        {"-window", "10ms"},
		"no processes":                   {"-processes", "0"},
		"rows that are not a number":     {"-rows", "many"},
		"an argument that is not a flag": {"latency"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := parse(args); err == nil {
				t.Error("no error, want one")
			}
		})
	}
}
