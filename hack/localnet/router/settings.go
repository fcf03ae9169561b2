package router

import (
	"errors"
	"fmt"
	"slices"

	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// Settings is how a router behaves. The zero value has no faults and no lies.
type Settings struct {
	// Wide is the number of extra accounts in the instruction, as a route over
	// several markets has. They are read-only and unused. The parameter maxAccounts
	// of a quote bounds them; a direct route has none.
	Wide int `json:"wide,omitempty"`
	// Outside says that the extra accounts are not in the lookup table. Each of them
	// then takes 32 bytes of the transaction.
	Outside bool `json:"outside,omitempty"`
	// Faults are rules with latency, jitter, status, retryAfter, cut and hang only.
	// Their method is CallBuild, CallQuote, CallInstructions or empty.
	Faults []fault.Rule `json:"faults,omitempty"`
	// Lies are drawn one by one. A call has every lie that is drawn for it.
	Lies []LieRule `json:"lies,omitempty"`
}

// maxWide is more accounts than any transaction can name.
const maxWide = 256

// Validate returns an error that names an invalid setting and what it should be.
func (s *Settings) Validate() error {
	if s.Wide < 0 || s.Wide > maxWide {
		return fmt.Errorf("wide is %d, expected 0 to %d accounts", s.Wide, maxWide)
	}
	if err := fault.Validate(s.Faults); err != nil {
		return err
	}
	for i := range s.Faults {
		if err := validFault(&s.Faults[i]); err != nil {
			return fmt.Errorf("fault rule %d: %w", i, err)
		}
	}
	for i := range s.Lies {
		if err := s.Lies[i].validate(); err != nil {
			return fmt.Errorf("lie %d: %w", i, err)
		}
	}
	return nil
}

// validFault returns an error for an effect that only an RPC endpoint can have.
func validFault(rule *fault.Rule) error {
	allowed := fault.Rule{
		Method: rule.Method, Probability: rule.Probability, Latency: rule.Latency, Jitter: rule.Jitter,
		Status: rule.Status, RetryAfter: rule.RetryAfter, Cut: rule.Cut, Hang: rule.Hang,
	}
	if *rule != allowed {
		return errors.New("expected latency, jitter, status, retryAfter, cut or hang: a router has no other fault")
	}
	if calls := []string{"", CallBuild, CallQuote, CallInstructions}; !slices.Contains(calls, rule.Method) {
		return fmt.Errorf("method is %q, expected %q, %q, %q, or none for all", rule.Method, CallBuild, CallQuote, CallInstructions)
	}
	return nil
}

// ParseSettings reads and validates settings in JSON.
func ParseSettings(raw []byte) (Settings, error) {
	var s Settings
	if err := fault.DecodeStrictly(raw, &s); err != nil {
		return s, fmt.Errorf("router settings: expected a JSON object with wide, outside, faults and lies: %w", err)
	}
	if err := s.Validate(); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// Set replaces all settings at once. The zero value ends all faults and lies. When a
// setting is invalid, Set changes nothing and returns an error.
func (r *Router) Set(s Settings) error {
	if err := s.Validate(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.faults.Set(s.Faults); err != nil {
		return err
	}
	s.Faults, s.Lies = slices.Clone(s.Faults), slices.Clone(s.Lies)
	r.settings = s
	return nil
}

// Settings returns the settings.
func (r *Router) Settings() Settings {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.settings
	s.Faults, s.Lies = slices.Clone(s.Faults), slices.Clone(s.Lies)
	return s
}

// draft says how to answer one call: the settings at its start, and the lies that are drawn for it.
type draft struct {
	wide    int
	outside bool
	lies    map[Lie]LieRule
}

func (d *draft) applies(lie Lie) bool {
	_, ok := d.lies[lie]
	return ok
}

// draw decides how to answer the next call of a name. The lies depend only on the
// settings, the seed, the name and the number of earlier calls, so that they repeat.
func (r *Router) draw(call string) *draft {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.stats.Calls[call]
	r.stats.Calls[call]++
	d := &draft{wide: r.settings.Wide, outside: r.settings.Outside, lies: make(map[Lie]LieRule)}
	for i, rule := range r.settings.Lies {
		chance := fault.Random(r.opts.Seed, call, n, i).Float64()
		applicable := slices.Contains(lies()[rule.Lie], call) && (rule.Call == "" || rule.Call == call)
		if applicable && (rule.Probability == 0 || chance < rule.Probability) {
			d.lies[rule.Lie] = rule
		}
	}
	for lie := range d.lies {
		r.stats.Lies[lie]++
	}
	return d
}
