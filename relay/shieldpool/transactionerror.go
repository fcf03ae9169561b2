package shieldpool

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// TransactionError is the network's reason for refusing or failing a transaction, as
// Solana's RPC reports it (Agave's TransactionError in JSON).
type TransactionError struct {
	// Kind is the outer variant, such as BlockhashNotFound or InstructionError.
	Kind string
	// Instruction is the index of the failing instruction, and Detail is the variant of its
	// error, such as Custom. Both are set when Kind is InstructionError.
	Instruction int
	Detail      string
	// Custom is the program's code; set when Detail is Custom.
	Custom uint32
	// Account is the index of the affected account; set for InsufficientFundsForRent.
	Account int
}

// ParseTransactionError decodes the JSON of an err member; nil for null.
func ParseTransactionError(raw []byte) (*TransactionError, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, nil //nolint:nilnil // no error is what null means
	}
	if raw[0] == '"' {
		e := new(TransactionError)
		err := json.Unmarshal(raw, &e.Kind)
		return e, err
	}
	var outer map[string]json.RawMessage
	if err := json.Unmarshal(raw, &outer); err != nil || len(outer) != 1 {
		return nil, fmt.Errorf("transaction error of %d bytes is neither a name nor an object of one member", len(raw))
	}
	for kind, body := range outer {
		e := &TransactionError{Kind: kind}
		switch kind {
		case "InstructionError":
			err := e.parseInstruction(body)
			return e, err
		case "InsufficientFundsForRent":
			var b struct {
				AccountIndex int `json:"account_index"`
			}
			if err := json.Unmarshal(body, &b); err != nil {
				return nil, fmt.Errorf("decode InsufficientFundsForRent: %w", err)
			}
			e.Account = b.AccountIndex
		}
		return e, nil
	}
	return nil, nil //nolint:nilnil // not reached: outer has one member
}

func (e *TransactionError) parseInstruction(body []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(body, &pair); err != nil || len(pair) != 2 {
		return fmt.Errorf("InstructionError has %d bytes that are not a pair of index and error", len(body))
	}
	if err := json.Unmarshal(pair[0], &e.Instruction); err != nil {
		return fmt.Errorf("decode InstructionError's index: %w", err)
	}
	if err := json.Unmarshal(pair[1], &e.Detail); err == nil {
		return nil
	}
	var detail map[string]json.RawMessage
	if err := json.Unmarshal(pair[1], &detail); err != nil || len(detail) != 1 {
		return fmt.Errorf("InstructionError's error is neither a name nor an object of one member")
	}
	for name, v := range detail {
		e.Detail = name
		if name == "Custom" {
			if err := json.Unmarshal(v, &e.Custom); err != nil {
				return fmt.Errorf("decode custom program code: %w", err)
			}
		}
	}
	return nil
}

// Error returns the variant, with the program's custom code in hex if there is one.
func (e *TransactionError) Error() string {
	switch {
	case e.Detail == "Custom":
		return fmt.Sprintf("%s at instruction %d: custom program error 0x%x", e.Kind, e.Instruction, e.Custom)
	case e.Detail != "":
		return fmt.Sprintf("%s at instruction %d: %s", e.Kind, e.Instruction, e.Detail)
	default:
		return e.Kind
	}
}

// MaxLoadedDataExceeded is the error of a transaction that loads more account data than its
// limit allows. Such a transaction pays the fee, but runs no instruction.
const MaxLoadedDataExceeded = "MaxLoadedAccountsDataSizeExceeded"
