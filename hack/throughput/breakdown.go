package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// relayPart is a part of the relay's work: stacks that have one of the functions and none of an earlier part.
type relayPart struct {
	name      string
	functions []string
}

// others is the last part, of every other stack.
const others = "the rest"

func relayWork() []relayPart {
	return []relayPart{
		{"garbage collection", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge"}},
		{"tree", []string{"/relay/merkle."}},
		{"verification of proofs", []string{"/relay/groth16.", "/internal/admission.(*proofQueue)"}},
		{"Postgres client", []string{"github.com/jackc/"}},
		{"signing", []string{"crypto/ed25519.", "/internal/signer."}},
		{"RPC client", []string{"/relay/rpc.", "/internal/chain.", "net/http.(*persistConn)", "net/http.(*Transport)"}},
		{"HTTP, JSON, admission", []string{"net/http.(*conn)", "/internal/httpapi."}},
		{"scheduler", []string{"runtime.mcall", "runtime.mstart", "runtime.sysmon"}},
		{others, nil},
	}
}

// sumByPart adds up what go tool pprof -traces prints: stacks between lines of hyphens, each from its value
// and its innermost function on.
func sumByPart(traces []byte) (sums map[string]float64, err error) {
	sums = make(map[string]float64)
	for _, stack := range bytes.Split(traces, []byte("\n-----------+"))[1:] {
		_, stack, _ = bytes.Cut(stack, []byte("\n"))
		for len(stack) > 0 { // labels such as "bytes:  16B" come first
			line, rest, _ := bytes.Cut(stack, []byte("\n"))
			if fields := bytes.Fields(line); len(fields) > 0 && !bytes.HasSuffix(fields[0], []byte(":")) {
				break
			}
			stack = rest
		}
		value, functions, found := strings.Cut(strings.TrimSpace(string(stack)), " ")
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimRight(value, "msuknMGB"), 64)
		if err != nil {
			return nil, fmt.Errorf("read a profile: %w", err)
		}
		for _, part := range relayWork() {
			if part.name == others || slices.ContainsFunc(part.functions, func(f string) bool { return strings.Contains(functions, f) }) {
				sums[part.name] += n
				break
			}
		}
	}
	return sums, nil
}

// breakdown adds to the page where the time of a confirmed submission goes, from the profiles of the first
// session.
func (s *benchRun) breakdown(ctx context.Context, before, after reading, done int) error {
	if s.profiler == nil || len(s.report.Sections) > 0 || s.setup.Processes > 1 { // only one relay has a profile
		return nil
	}
	var columns []map[string]float64
	for _, args := range [][]string{{"-unit=ms", "cpu"}, {"-sample_index=alloc_space", "-unit=B", "allocs"}, {"-sample_index=alloc_objects", "allocs"}} {
		file := filepath.Join(s.profiler.out, "relay-"+s.profileName("carry")+"."+args[len(args)-1]+".pprof")
		command := append([]string{"tool", "pprof", "-traces"}, append(args[:len(args)-1], file)...)
		traces, err := exec.CommandContext(ctx, "go", command...).Output()
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		sums, err := sumByPart(traces)
		if err != nil {
			return err
		}
		columns = append(columns, sums)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## Where the time of a confirmed submission goes\n\n%s, by profiles.\n\n||processor time|allocated|objects|\n|---|---|---|---|\n", s.label)
	row := func(name string, values ...float64) {
		fmt.Fprintf(&b, "|%s|%.3f ms|%.1f kB|%.0f|\n", name, values[0]/float64(done), values[1]/1000/float64(done), values[2]/float64(done))
	}
	total := make([]float64, len(columns))
	for _, part := range relayWork() {
		values := make([]float64, len(columns))
		for i, sums := range columns {
			values[i] = sums[part.name]
			total[i] += values[i]
		}
		row(part.name, values...)
	}
	row("the relay", total...)
	fmt.Fprintf(&b, "|Postgres|%.3f ms|||\n", ms(after.processor.Since(before.processor).Database)/float64(done))
	fmt.Fprintf(&b, "\nSQL statements each: %s.\nRPC calls each: %s.\n", perEach(before.statements, after.statements, done), perEach(before.calls, after.calls, done))
	s.report.Sections = append(s.report.Sections, b.String())
	return nil
}

// perEach lists counts of each submission by kind, the most frequent first.
func perEach[N int64 | uint64](before, after map[string]N, done int) string {
	each := func(kind string) float64 { return float64(after[kind]-before[kind]) / float64(done) }
	kinds := slices.SortedFunc(maps.Keys(after), func(a, b string) int { return cmp.Or(cmp.Compare(each(b), each(a)), cmp.Compare(a, b)) })
	var texts []string
	for _, kind := range kinds {
		if n := each(kind); n >= 0.005 {
			texts = append(texts, fmt.Sprintf("%s %.2f", kind, n))
		}
	}
	return strings.Join(texts, ", ")
}
