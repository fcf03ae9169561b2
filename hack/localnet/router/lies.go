package router

import (
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"
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
	// BogusTable names a lookup table that does not exist. ForeignTable names
	// an account that is not a lookup table.
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
	quote, instructions := []string{CallQuote, CallBuild}, []string{CallInstructions, CallBuild}
	both := []string{CallQuote, CallInstructions, CallBuild}
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
	// Call is CallBuild, CallQuote or CallInstructions; "" means every call to which the lie can apply.
	Call string `json:"call,omitempty"`
	// Probability is the probability that a call has the lie, up to 1; 0 means 1.
	Probability float64 `json:"probability,omitempty"`
	// Account is the account that PayerAccount and PayerWritable add: a relay's fee
	// payer, or a token account of the fee payer.
	Account solana.PublicKey `json:"account,omitzero"`
}

func (l *LieRule) validate() error {
	calls, exists := lies()[l.Lie]
	payer := l.Lie == PayerAccount || l.Lie == PayerWritable
	switch {
	case !exists:
		return fmt.Errorf("lie is %q, which is not known: hack/localnet/router/lies.go lists them", l.Lie)
	case l.Call != "" && !slices.Contains(calls, l.Call):
		return fmt.Errorf("call is %q, expected one to which %s can apply, or none for all of them", l.Call, l.Lie)
	case l.Probability < 0 || l.Probability > 1 || l.Probability != l.Probability:
		return fmt.Errorf("probability is %v, expected more than 0 and up to 1, or none for 1", l.Probability)
	case payer == l.Account.IsZero():
		return fmt.Errorf("account: expected an address with %s and %s, and none with other lies", PayerAccount, PayerWritable)
	}
	return nil
}
