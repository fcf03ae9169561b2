package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/drill/arena"
	"github.com/relaypool/relaypool/hack/drill/report"
)

// shortSeed is a seed whose short schedule has kills, a crash of the database, a fork and faults
// on both endpoints.
const shortSeed = 1206

// TestShortDrill runs a short drill with faster slots, one hostile endpoint and hostile
// clients. No other test has all of these at once.
func TestShortDrill(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	_ = os.Getenv("RELAYPOOL_SOURCES") // the cached result of a test that builds programs holds until this changes
	state, err := os.MkdirTemp("", "relaypool-drill-")
	if err != nil {
		t.Fatal(err)
	}
	const duration = 12 * time.Second
	outcome, err := arena.Run(t.Context(), arena.Options{
		Root: filepath.Join("..", ".."), State: state, Seed: shortSeed, Duration: duration, Quiet: 2 * time.Minute,
		Relays: 3, Endpoints: 2, Lies: arena.LieNames(), Attacks: arena.AttackNames(), Payers: 2, Swaps: 0.25, Rate: 6, InFlight: 100, PollMin: 300 * time.Millisecond, PollMax: 900 * time.Millisecond, PauseMax: time.Second,
		Slot: 40 * time.Millisecond, FinalizeAfter: 16, Progress: t.Output(),
	})
	if err != nil {
		t.Fatalf("%v; logs are in %s", err, state)
	}
	r := report.Make(shortSeed, duration, outcome)
	r.Print(t.Output())
	if !r.Passed() {
		if err := r.Write(state); err != nil {
			t.Error(err)
		}
		t.Fatalf("the drill found faults; logs, report and picture are in %s", state)
	}
	if err := os.RemoveAll(state); err != nil {
		t.Error(err)
	}
}
