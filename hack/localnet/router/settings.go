package router

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// Lie is one way in which an answer is hostile or broken.
type Lie string

// The lies. Those about quotes apply to GET /quote, those about instructions to
// POST /swap-instructions.
const (
	// WrongMint quotes another output mint than was asked for.
	WrongMint Lie = "wrong_mint"
	// WrongAmount quotes another input amount than was asked for.
	WrongAmount Lie = "wrong_amount"
	// LowThreshold quotes twice the market's output, threshold included; its
	// instruction then has no minimum and pays the market's output.
	LowThreshold Lie = "low_threshold_lie"

	// WrongProgram answers with an instruction of another program.
	WrongProgram Lie = "wrong_program"
	// PayerAccount adds the rule's account, writable and signer; PayerWritable
	// adds it writable only.
	PayerAccount  Lie = "payer_account"
	PayerWritable Lie = "payer_writable"
	// ExtraSigner adds an unknown signer.
	ExtraSigner Lie = "extra_signer"
	// OtherUser answers with the instruction of another user.
	OtherUser Lie = "other_user"
	// ShortOutput has the market keep half of the output, regardless of the minimum.
	ShortOutput Lie = "short_output"
	// PartialFill swaps half of the input.
	PartialFill Lie = "partial_fill"
	// BogusTable names a lookup table that does not exist, ForeignTable an
	// account that is not a lookup table.
	BogusTable   Lie = "bogus_table"
	ForeignTable Lie = "foreign_table"

	// Garbage answers with a page of HTML and status 200, Truncated with half of
	// the answer before the connection ends, Huge with 16 MiB.
	Garbage   Lie = "garbage"
	Truncated Lie = "truncated"
	Huge      Lie = "huge"
)

// lies returns the calls that each lie can apply to.
func lies() map[Lie][]string {
	quote, instructions, both := []string{CallQuote}, []string{CallInstructions}, []string{CallQuote, CallInstructions}
	return map[Lie][]string{
		WrongMint: quote, WrongAmount: quote, LowThreshold: both,
		WrongProgram: instructions, PayerAccount: instructions, PayerWritable: instructions, ExtraSigner: instructions,
		OtherUser: instructions, ShortOutput: instructions, PartialFill: instructions, BogusTable: instructions, ForeignTable: instructions,
		Garbage: both, Truncated: both, Huge: both,
	}
}

// LieRule makes some calls lie.
type LieRule struct {
	Lie Lie `json:"lie"`
	// Call is CallQuote or CallInstructions; "" is every call that the lie can apply to.
	Call string `json:"call,omitempty"`
	// Probability is the chance that a call lies, up to 1; 0 stands for 1.
	Probability float64 `json:"probability,omitempty"`
	// Account is what PayerAccount and PayerWritable add: a relay's fee payer,
	// or a token account of it.
	Account solana.PublicKey `json:"account,omitzero"`
}

// Settings is how a router behaves. The zero value is honest and never fails.
type Settings struct {
	// Wide is the number of extra accounts that the instruction of a route that is
	// not direct names, as a route over several markets does. They are read-only
	// and unused; maxAccounts of a quote bounds them.
	Wide int `json:"wide,omitempty"`
	// Outside says that the extra accounts are not in the lookup table, so that
	// each of them takes 32 bytes of the transaction.
	Outside bool `json:"outside,omitempty"`
	// Faults are rules with latency, jitter, status, retryAfter, cut and hang, and
	// CallQuote, CallInstructions or none as their method.
	Faults []fault.Rule `json:"faults,omitempty"`
	// Lies apply together: a call has every lie that it draws.
	Lies []LieRule `json:"lies,omitempty"`
}

// maxWide is more accounts than any transaction can name.
const maxWide = 256

// Validate says which setting does not fit, and what it should be.
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

// validFault refuses the effects that only an endpoint of the chain can have.
func validFault(rule *fault.Rule) error {
	served := fault.Rule{
		Method: rule.Method, Probability: rule.Probability, Latency: rule.Latency, Jitter: rule.Jitter,
		Status: rule.Status, RetryAfter: rule.RetryAfter, Cut: rule.Cut, Hang: rule.Hang,
	}
	if *rule != served {
		return errors.New("a router has latency, jitter, status, retryAfter, cut and hang, and no other fault")
	}
	if rule.Method != "" && rule.Method != CallQuote && rule.Method != CallInstructions {
		return fmt.Errorf("method is %q, expected %q, %q, or none for both", rule.Method, CallQuote, CallInstructions)
	}
	return nil
}

func (l *LieRule) validate() error {
	calls, known := lies()[l.Lie]
	payer := l.Lie == PayerAccount || l.Lie == PayerWritable
	switch {
	case !known:
		return fmt.Errorf("lie is %q, which is not known: README.md of hack/localnet lists them", l.Lie)
	case l.Call != "" && !slices.Contains(calls, l.Call):
		return fmt.Errorf("call is %q, expected one that can tell %s, or none for each that can", l.Call, l.Lie)
	case l.Probability < 0 || l.Probability > 1 || l.Probability != l.Probability:
		return fmt.Errorf("probability is %v, expected more than 0 and up to 1, or none for 1", l.Probability)
	case payer == l.Account.IsZero():
		return fmt.Errorf("account: expected an address with %s and %s, and none with other lies", PayerAccount, PayerWritable)
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

// Set replaces the settings, all at once; the zero value makes the router honest
// again. When one does not fit, nothing changes.
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

// draft is how one call is to be answered: the settings as of its beginning, and
// the lies that apply to it.
type draft struct {
	wide    int
	outside bool
	lies    map[Lie]LieRule
}

func (d *draft) tells(lie Lie) bool {
	_, ok := d.lies[lie]
	return ok
}

// draw decides how the next call of a name is answered. It depends only on the
// seed, the name and the number of earlier calls, so that a schedule repeats.
func (r *Router) draw(call string) *draft {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.stats.Calls[call]
	r.stats.Calls[call]++
	d := &draft{wide: r.settings.Wide, outside: r.settings.Outside, lies: make(map[Lie]LieRule)}
	for i, rule := range r.settings.Lies {
		chance := fault.Random(r.opts.Seed, call, n, i).Float64()
		told := slices.Contains(lies()[rule.Lie], call) && (rule.Call == "" || rule.Call == call)
		if told && (rule.Probability == 0 || chance < rule.Probability) {
			d.lies[rule.Lie] = rule
		}
	}
	for lie := range d.lies {
		r.stats.Lies[lie]++
	}
	return d
}
