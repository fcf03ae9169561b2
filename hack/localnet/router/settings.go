package router

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// Lie is one way in which an answer is false or broken.
type Lie string

// The lies. The function lies returns the calls to which each can apply.
const (
	// WrongMint quotes another output mint than the client asked for.
	WrongMint Lie = "wrong_mint"
	// WrongAmount quotes another input amount than the client asked for.
	WrongAmount Lie = "wrong_amount"
	// LowThreshold doubles the output and the threshold of a quote. The instruction
	// has no minimum and pays the market's true output.
	LowThreshold Lie = "low_threshold_lie"

	// WrongProgram answers with an instruction of another program.
	WrongProgram Lie = "wrong_program"
	// PayerAccount adds the rule's account as writable and signer; PayerWritable
	// adds the account as writable only.
	PayerAccount  Lie = "payer_account"
	PayerWritable Lie = "payer_writable"
	// ExtraSigner adds an unknown signer.
	ExtraSigner Lie = "extra_signer"
	// OtherUser answers with the instruction of another user.
	OtherUser Lie = "other_user"
	// ShortOutput makes the market keep half of the output, whatever the minimum.
	ShortOutput Lie = "short_output"
	// PartialFill swaps half of the input.
	PartialFill Lie = "partial_fill"
	// BogusTable names a lookup table that does not exist, ForeignTable an
	// account that is not a lookup table.
	BogusTable   Lie = "bogus_table"
	ForeignTable Lie = "foreign_table"

	// Garbage answers with a page of HTML and status 200. Truncated sends half of the
	// answer and cuts the connection. Huge adds 16 MiB of padding to the answer.
	Garbage   Lie = "garbage"
	Truncated Lie = "truncated"
	Huge      Lie = "huge"
)

// lies returns the calls to which each lie can apply.
func lies() map[Lie][]string {
	quote, instructions, both := []string{CallQuote}, []string{CallInstructions}, []string{CallQuote, CallInstructions}
	return map[Lie][]string{
		WrongMint: quote, WrongAmount: quote, LowThreshold: both,
		WrongProgram: instructions, PayerAccount: instructions, PayerWritable: instructions, ExtraSigner: instructions,
		OtherUser: instructions, ShortOutput: instructions, PartialFill: instructions, BogusTable: instructions, ForeignTable: instructions,
		Garbage: both, Truncated: both, Huge: both,
	}
}

// LieRule puts a lie into the answers of some calls.
type LieRule struct {
	Lie Lie `json:"lie"`
	// Call is CallQuote or CallInstructions; "" means every call to which the lie can apply.
	Call string `json:"call,omitempty"`
	// Probability is the probability that a call has the lie, up to 1; 0 means 1.
	Probability float64 `json:"probability,omitempty"`
	// Account is the account that PayerAccount and PayerWritable add: a relay's fee
	// payer, or a token account of the fee payer.
	Account solana.PublicKey `json:"account,omitzero"`
}

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
	// Their method is CallQuote, CallInstructions or empty.
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
	if rule.Method != "" && rule.Method != CallQuote && rule.Method != CallInstructions {
		return fmt.Errorf("method is %q, expected %q, %q, or none for both", rule.Method, CallQuote, CallInstructions)
	}
	return nil
}

func (l *LieRule) validate() error {
	calls, exists := lies()[l.Lie]
	payer := l.Lie == PayerAccount || l.Lie == PayerWritable
	switch {
	case !exists:
		return fmt.Errorf("lie is %q, which is not known: README.md of hack/localnet lists them", l.Lie)
	case l.Call != "" && !slices.Contains(calls, l.Call):
		return fmt.Errorf("call is %q, expected one to which %s can apply, or none for all of them", l.Call, l.Lie)
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
