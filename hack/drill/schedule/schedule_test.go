package schedule_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/drill/schedule"
)

func options(seed uint64) schedule.Options {
	return schedule.Options{
		Seed: seed, Duration: 3 * time.Minute, Relays: 3, Endpoints: 2,
		Faults: []string{"slow", "errors", "lags", "dead"}, Hard: []string{"errors", "dead"}, Kinds: schedule.AllKinds(), MaxForked: 6,
		RouterFaults: []string{"down", "short_output", "wrong_program"}, Strangers: []string{"executes"},
	}
}

// hostile adds an endpoint that lies, and hostile clients.
func hostile(o schedule.Options) schedule.Options {
	o.Lies, o.Attacks = []string{"slots ahead", "all landed", "every simulation good"}, []string{"forges", "copies"}
	o.Lasting = o.Lies[:2]
	return o
}

func TestSameSeedGivesSameSchedule(t *testing.T) {
	t.Parallel()
	first, again, other := schedule.Make(options(1)), schedule.Make(options(1)), schedule.Make(options(2))
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("two schedules of one seed (-first +second):\n%s", diff)
	}
	if cmp.Equal(first, other) {
		t.Error("two seeds give the same schedule")
	}
}

func TestSchedulesHaveAllEventsWithoutOverlap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		o := options(seed)
		if seed%4 == 3 {
			o.Duration = 15 * time.Second
		}
		if seed%2 == 0 {
			o = hostile(o)
		}
		events := schedule.Make(o)
		if len(events) < 5 {
			t.Errorf("seed %d: %d events, want more", seed, len(events))
		}
		kinds := map[string]bool{}
		for i, e := range events {
			kinds[string(e.Kind)+e.Fault] = true
			if e.At+e.For > o.Duration || i > 0 && e.At < events[i-1].At {
				t.Errorf("seed %d: event %s is out of order or ends after %s", seed, e, o.Duration)
			}
			if down := relaysDown(events, e.At); down >= o.Relays {
				t.Errorf("seed %d: no relay is up at %s", seed, e.At)
			}
			if overlaps(events, i) {
				t.Errorf("seed %d: the target of event %s is already in use", seed, e)
			}
		}
		if o.Duration < time.Minute {
			continue
		}
		for _, kind := range o.Kinds {
			if kind != schedule.Fork && !kinds[string(kind)] {
				t.Errorf("seed %d: no event %q in %s", seed, kind, o.Duration)
			}
		}
		for _, fault := range o.RouterFaults {
			if !kinds[string(schedule.RouterFault)+fault] {
				t.Errorf("seed %d: no router fault %q in %s", seed, fault, o.Duration)
			}
		}
		for _, name := range o.Strangers {
			if !kinds[string(schedule.Meddle)+name] {
				t.Errorf("seed %d: no action %q of strangers in %s", seed, name, o.Duration)
			}
		}
		if !kinds[string(schedule.MovePrice)] {
			t.Errorf("seed %d: the price never moves in %s", seed, o.Duration)
		}
		for _, name := range o.Attacks {
			if !kinds[string(schedule.Attack)+name] {
				t.Errorf("seed %d: no attack %q in %s", seed, name, o.Duration)
			}
		}
		for _, fault := range o.Faults {
			if !kinds["fault"+fault] {
				t.Errorf("seed %d: no fault %q in %s", seed, fault, o.Duration)
			}
		}
	}
}

// Total outages happen, but most of the time an endpoint is good.
func TestAnEndpointIsGoodMostOfTheTime(t *testing.T) {
	t.Parallel()
	var allBad, all time.Duration
	for seed := range uint64(100) {
		o := options(seed)
		events := schedule.Make(o)
		for at := time.Duration(0); at < o.Duration; at += 100 * time.Millisecond {
			hard := map[int]bool{}
			for _, e := range events {
				if e.Kind == schedule.Fault && slices.Contains(o.Hard, e.Fault) && e.At <= at && at < e.At+e.For {
					hard[e.Target] = true
				}
			}
			all += 100 * time.Millisecond
			if len(hard) == o.Endpoints {
				allBad += 100 * time.Millisecond
			}
		}
	}
	if share := allBad.Seconds() / all.Seconds(); share < 0.005 || share > 0.2 {
		t.Errorf("no endpoint is good in %.1f %% of the time, want from 0.5 to 20", 100*share)
	}
}

// The events that do not concern market and router are the same with swaps and without, so that
// old seeds keep their schedules.
func TestSwapsDoNotChangeOtherEvents(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		o := options(seed)
		with := slices.DeleteFunc(schedule.Make(o), func(e schedule.Event) bool {
			return slices.Contains([]schedule.Kind{schedule.MovePrice, schedule.RouterFault, schedule.Meddle}, e.Kind)
		})
		o.RouterFaults = nil
		if diff := cmp.Diff(schedule.Make(o), with); diff != "" {
			t.Errorf("seed %d (-without swaps +with):\n%s", seed, diff)
		}
	}
}

func TestHostilityDoesNotChangeOtherEvents(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		with := slices.DeleteFunc(schedule.Make(hostile(options(seed))), func(e schedule.Event) bool {
			return e.Kind == schedule.Lie || e.Kind == schedule.Attack
		})
		if diff := cmp.Diff(schedule.Make(options(seed)), with); diff != "" {
			t.Errorf("seed %d (-without +with):\n%s", seed, diff)
		}
	}
}

// Only one endpoint lies, one lie at a time, and in about half of the schedules it still lies when
// the load has ended.
func TestOneEndpointLies(t *testing.T) {
	t.Parallel()
	whole, lasting, count := 0, 0, map[string]int{}
	const seeds = 200
	for seed := range uint64(seeds) {
		o := hostile(options(seed))
		o.Endpoints = 2 + int(seed%2)
		liar, over := -1, time.Duration(0)
		events := slices.DeleteFunc(schedule.Make(o), func(e schedule.Event) bool { return e.Kind != schedule.Lie })
		for i, e := range events {
			count[e.Fault]++
			if liar >= 0 && e.Target != liar || e.Target >= o.Endpoints {
				t.Errorf("seed %d: endpoint %d lies beside endpoint %d", seed, e.Target+1, liar+1)
			}
			liar = e.Target
			if e.At < over {
				t.Errorf("seed %d: lie %s starts before the previous one ends", seed, e)
			}
			over = e.At + e.For
			if e.Lasts && !slices.Contains(o.Lasting, e.Fault) {
				t.Errorf("seed %d: lie %s lasts until the end, which is not allowed", seed, e)
			}
			if e.Lasts && (i != len(events)-1 || over != o.Duration) {
				t.Errorf("seed %d: lie %s lasts until the end, but is number %d of %d", seed, e, i+1, len(events))
			}
		}
		if last := events[len(events)-1]; last.Lasts {
			lasting++
			if len(events) == 1 {
				whole++
			}
		}
	}
	if whole < seeds/8 || lasting < seeds/3 || lasting > 2*seeds/3 {
		t.Errorf("of %d schedules %d have one lie for the whole time, and %d a lie that lasts until the end; want about a quarter and a half", seeds, whole, lasting)
	}
	for _, name := range hostile(options(0)).Lies {
		if count[name] < seeds/2 {
			t.Errorf("the lie %q occurs %d times in %d schedules, want more", name, count[name], seeds)
		}
	}
}

// In every schedule rent and slot time change, and then the consensus migrates once, while slots
// have their usual length. No fork follows, because finalized blocks cannot be undone.
func TestTheChainChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		var migrations int
		var migration schedule.Event
		amounts := map[int]bool{}
		events := schedule.Make(options(seed))
		for _, e := range events {
			switch e.Kind {
			case schedule.Migrate:
				migrations, migration = migrations+1, e
			case schedule.ChangeRent, schedule.ChangeSlotTime:
				amounts[e.Amount] = true
			}
		}
		if migrations != 1 || len(amounts) != 4 {
			t.Errorf("seed %d: %d migrations and changes to %v, want 1, and two of rent and two of slot time", seed, migrations, amounts)
		}
		for _, e := range events {
			if e.Kind == schedule.Fork && e.At >= migration.At {
				t.Errorf("seed %d: %s is after the migration at %s", seed, e, migration.At)
			}
			if e.Kind == schedule.ChangeSlotTime && e.At < migration.At+migration.For && e.At+e.For > migration.At {
				t.Errorf("seed %d: %s is during the migration at %s", seed, e, migration.At)
			}
		}
	}
}

func TestRouterAndPriceAreNormalPartOfTheTime(t *testing.T) {
	t.Parallel()
	var bad, moved, all int
	for seed := range uint64(100) {
		o := options(seed)
		events := schedule.Make(o)
		for at := time.Duration(0); at < o.Duration; at += 100 * time.Millisecond {
			now := map[schedule.Kind]int{}
			for _, e := range events {
				if e.At <= at && at < e.At+e.For {
					now[e.Kind]++
				}
			}
			all++
			bad += min(now[schedule.RouterFault], 1)
			moved += min(now[schedule.MovePrice], 1)
			if now[schedule.MovePrice] > 1 {
				t.Fatalf("seed %d: two prices at %s", seed, at)
			}
		}
	}
	for what, n := range map[string]int{"the router fails": bad, "the price is changed": moved} {
		if share := float64(n) / float64(all); share < 0.15 || share > 0.75 {
			t.Errorf("%s in %.0f %% of the time, want from 15 to 75", what, 100*share)
		}
	}
}

func relaysDown(events []schedule.Event, at time.Duration) (down int) {
	for _, e := range events {
		if (e.Kind == schedule.KillRelay || e.Kind == schedule.StopRelay) && e.At <= at && at < e.At+e.For {
			down++
		}
	}
	return down
}

// overlaps reports whether an earlier event still has the target of this one.
func overlaps(events []schedule.Event, i int) bool {
	group := func(e schedule.Event) string {
		switch e.Kind {
		case schedule.KillRelay, schedule.StopRelay:
			return "relay"
		case schedule.StopPostgres, schedule.CrashPostgres, schedule.CutConnections:
			return "postgres"
		default:
			return string(e.Kind) + e.Fault
		}
	}
	return slices.ContainsFunc(events[:i], func(e schedule.Event) bool {
		return e.For > 0 && group(e) == group(events[i]) && e.Target == events[i].Target && events[i].At < e.At+e.For
	})
}

func TestEventString(t *testing.T) {
	t.Parallel()
	tests := map[string]schedule.Event{
		"   3.2 s  kill relay 2, for 1.5 s":                                     {At: 3200 * time.Millisecond, For: 1500 * time.Millisecond, Kind: schedule.KillRelay, Target: 1},
		"  10.0 s  fault lags on endpoint 1, for 4.0 s":                         {At: 10 * time.Second, For: 4 * time.Second, Kind: schedule.Fault, Fault: "lags"},
		" 100.0 s  fork of 3 blocks, transactions lost":                         {At: 100 * time.Second, Kind: schedule.Fork, Fault: "lost", Amount: 3},
		"   1.0 s  cut connections":                                             {At: time.Second, Kind: schedule.CutConnections},
		"   1.0 s  burst, 4 times the load, for 5.0 s":                          {At: time.Second, For: 5 * time.Second, Kind: schedule.Burst, Amount: 4},
		"   1.0 s  move price to 70 %, for 5.0 s":                               {At: time.Second, For: 5 * time.Second, Kind: schedule.MovePrice, Amount: 70},
		"   1.0 s  strangers wraps, for 5.0 s":                                  {At: time.Second, For: 5 * time.Second, Kind: schedule.Meddle, Fault: "wraps"},
		"   1.0 s  router down, for 5.0 s":                                      {At: time.Second, For: 5 * time.Second, Kind: schedule.RouterFault, Fault: "down"},
		"   1.0 s  attack forges, for 5.0 s":                                    {At: time.Second, For: 5 * time.Second, Kind: schedule.Attack, Fault: "forges"},
		"   1.0 s  lie of endpoint 2: all landed, for 5.0 s":                    {At: time.Second, For: 5 * time.Second, Kind: schedule.Lie, Fault: "all landed", Target: 1},
		"   1.0 s  lie of endpoint 1: all landed, until every outcome is final": {At: time.Second, For: 5 * time.Second, Kind: schedule.Lie, Fault: "all landed", Lasts: true},
		"   1.0 s  skip slots, 4":                                               {At: time.Second, Kind: schedule.SkipSlots, Amount: 4},
		"   1.0 s  rent of 2575 lamports a byte, for 5.0 s":                     {At: time.Second, For: 5 * time.Second, Kind: schedule.ChangeRent, Amount: 2575},
		"   1.0 s  slot time of 75 %, for 5.0 s":                                {At: time.Second, For: 5 * time.Second, Kind: schedule.ChangeSlotTime, Amount: 75},
		"   1.0 s  migrate consensus, for 9.0 s":                                {At: time.Second, For: 9 * time.Second, Kind: schedule.Migrate},
	}
	for want, e := range tests {
		if got := e.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if strings.HasSuffix(want, " ") {
			t.Errorf("%q ends in a space", want)
		}
	}
}
