package fault

import (
	"hash/fnv"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Plan is the faults of one call.
type Plan struct {
	// Before and After delay the call before and after it acts.
	Before, After time.Duration
	// Failure is the rule that fails the call; nil when none does.
	Failure *Rule
	// Rule has the effects on the answer, combined over the rules that apply.
	Rule
}

// Injector has the rules of one endpoint and draws which rules apply. It is safe
// for concurrent use.
type Injector struct {
	seed uint64

	mu      sync.Mutex
	rules   []Rule
	draws   map[string]uint64
	applied map[string]uint64
}

// NewInjector makes an injector without rules.
func NewInjector(seed uint64) *Injector {
	return &Injector{seed: seed, draws: make(map[string]uint64), applied: make(map[string]uint64)}
}

// Set replaces all rules at once. When a rule is invalid, Set changes nothing and returns an error.
// Calls that are executing keep their plan. The counts of draws are not reset.
func (in *Injector) Set(rules []Rule) error {
	if err := Validate(rules); err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	// The slice is never changed in place: plans have pointers into it.
	in.rules = slices.Clone(rules)
	return nil
}

// Rules returns a copy of the rules.
func (in *Injector) Rules() []Rule {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]Rule{}, in.rules...)
}

// Applied returns how often each effect applied since the start, by its JSON name.
func (in *Injector) Applied() map[string]uint64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return maps.Clone(in.applied)
}

// Plan draws the faults of the next call of a method.
func (in *Injector) Plan(method string) Plan {
	in.mu.Lock()
	defer in.mu.Unlock()
	var p Plan
	for rule, random := range in.drawn(method, method) {
		if p.Failure == nil && rule.failures() > 0 {
			p.Failure = rule
			in.applied[rule.failureName()]++
		}
		in.addDelay(&p, rule, random)
		in.addEffects(&p, rule, method)
	}
	return p
}

// Notify draws the faults of one check of a subscription that was made by method:
// the lag of the state that the check reads, and whether a notification is lost.
func (in *Injector) Notify(method string) (lag uint64, lost bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for rule := range in.drawn(method+" notification", method) {
		lag = max(lag, rule.Lag)
		lost = lost || rule.Socket == SocketSilent
	}
	return lag, lost
}

// Lost counts a lost notification.
func (in *Injector) Lost() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.applied["socketSilent"]++
}

// CutSocket draws whether a connection is cut in this slot.
func (in *Injector) CutSocket() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	for rule := range in.drawn(MethodSocket+" slot", "") {
		if rule.Socket == SocketCut {
			in.applied["socketCut"]++
			return true
		}
	}
	return false
}

// drawn yields the rules for a method that the next draw of a key selects, with the rest of their
// random numbers.
func (in *Injector) drawn(key, method string) iter.Seq2[*Rule, *rand.Rand] {
	n := in.draws[key]
	in.draws[key]++
	return func(yield func(*Rule, *rand.Rand) bool) {
		for i := range in.rules {
			rule, random := &in.rules[i], Random(in.seed, key, n, i)
			if rule.appliesTo(method) && rule.draw(random) && !yield(rule, random) {
				return
			}
		}
	}
}

// Random is the random source for rule i and the n-th draw of a key.
func Random(seed uint64, key string, n uint64, i int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	source := rand.NewPCG(seed^h.Sum64(), n<<16|uint64(i&0xffff))
	return rand.New(source) //nolint:gosec // G404: a schedule that repeats, no secret
}

func (r *Rule) draw(random *rand.Rand) bool {
	// The number is always drawn, so that the later jitter does not depend on Probability.
	chance := random.Float64()
	return r.Probability == 0 || chance < r.Probability
}

func (in *Injector) addDelay(p *Plan, rule *Rule, random *rand.Rand) {
	delay := rule.Latency
	if rule.Jitter > 0 {
		delay += time.Duration(random.Int64N(int64(rule.Jitter)))
	}
	if rule.Latency == 0 && rule.Jitter == 0 {
		return
	}
	in.applied["latency"]++
	if rule.AfterActing {
		p.After += delay
	} else {
		p.Before += delay
	}
}

// addEffects adds to the plan the rule's effects on the answer of a method.
func (in *Injector) addEffects(p *Plan, rule *Rule, method string) {
	if rule.History > 0 && (p.History == 0 || rule.History < p.History) {
		p.History = rule.History
	}
	p.UnknownVersionBytes = max(p.UnknownVersionBytes, rule.UnknownVersionBytes)
	p.Empty = p.Empty || rule.Empty
	p.SlotAsHeight = p.SlotAsHeight || rule.SlotAsHeight
	p.Lag, p.Ahead, p.HeightAhead = max(p.Lag, rule.Lag), max(p.Ahead, rule.Ahead), max(p.HeightAhead, rule.HeightAhead)
	drop, freeze := rule.Drop && method == methodSend, rule.FrozenBlockhash && method == methodBlockhash
	p.Drop, p.FrozenBlockhash = p.Drop || drop, p.FrozenBlockhash || freeze
	health := rule.Health != "" && method == methodHealth
	if health {
		p.Health = rule.Health
	}
	outcome := rule.Outcome != "" && p.Outcome == "" && (method == methodStatuses || method == methodSimulate || method == methodSend)
	if outcome {
		p.Outcome, p.Err = rule.Outcome, rule.Err
	}
	for name, applied := range map[string]bool{
		"history": rule.History > 0, "empty": rule.Empty, "slotAsHeight": rule.SlotAsHeight, "lag": rule.Lag > 0, "ahead": rule.Ahead > 0,
		"heightAhead": rule.HeightAhead > 0, "drop": drop, "frozenBlockhash": freeze, "health": health, "outcome": outcome,
		"unknownVersionBytes": rule.UnknownVersionBytes > 0,
	} {
		if applied {
			in.applied[name]++
		}
	}
}

// failureName is the JSON name of the way in which the rule fails a call.
func (r *Rule) failureName() string {
	switch {
	case r.Status != 0:
		return "status"
	case r.Error.Code != 0:
		return "error"
	case r.Cut:
		return "cut"
	default:
		return "hang"
	}
}
