package shieldpool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTransactionError(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   string
		want *TransactionError
		text string
	}{
		"null":                {"null", nil, ""},
		"nothing":             {"", nil, ""},
		"a name":              {`"BlockhashNotFound"`, &TransactionError{Kind: "BlockhashNotFound"}, "BlockhashNotFound"},
		"a custom code":       {`{"InstructionError":[2,{"Custom":4097}]}`, &TransactionError{Kind: "InstructionError", Instruction: 2, Detail: "Custom", Custom: 0x1001}, "InstructionError at instruction 2: custom program error 0x1001"},
		"a named instruction": {`{"InstructionError":[0,"InvalidSeeds"]}`, &TransactionError{Kind: "InstructionError", Detail: "InvalidSeeds"}, "InstructionError at instruction 0: InvalidSeeds"},
		"another detail":      {`{"InstructionError":[0,{"BorshIoError":"x"}]}`, &TransactionError{Kind: "InstructionError", Detail: "BorshIoError"}, "InstructionError at instruction 0: BorshIoError"},
		"rent, with an index": {`{"InsufficientFundsForRent":{"account_index":6}}`, &TransactionError{Kind: "InsufficientFundsForRent", Account: 6}, "InsufficientFundsForRent"},
		"an unknown object":   {`{"DuplicateInstruction":3}`, &TransactionError{Kind: "DuplicateInstruction"}, "DuplicateInstruction"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseTransactionError([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if got != nil && got.Error() != tt.text {
				t.Errorf("text is %q, want %q", got.Error(), tt.text)
			}
		})
	}
	for _, bad := range []string{"{", "[]", "7", `{"a":1,"b":2}`, `{"InstructionError":[1]}`, `{"InstructionError":["x","y"]}`, `{"InstructionError":[1,[]]}`, `{"InstructionError":[1,{"Custom":"x"}]}`, `{"InsufficientFundsForRent":3}`} {
		if _, err := ParseTransactionError([]byte(bad)); err == nil {
			t.Errorf("%s is decoded", bad)
		}
	}
}
