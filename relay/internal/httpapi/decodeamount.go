package httpapi

import (
	"strconv"
	"strings"

	"github.com/relaypool/relaypool/relay/refusal"
)

// amount reads a whole number from 1 to 2^64-1, as a JSON number or a string. Both have to consist
// of decimal digits: a client's own library may already have misread 1e3, 1.0 or 007.
func (o object) amount(name string) (uint64, error) {
	raw, ok := o[name]
	if !ok || kindOf(raw) == "null" {
		return 0, refusal.New(refusal.InvalidRequest, "%s is missing: expected %s", name, amountText)
	}
	kind := kindOf(raw)
	text := string(raw)
	switch kind {
	case "number":
	case "string":
		s, err := stringOf(raw, field{name, amountText, maxAmountLength, refusal.InvalidSwap})
		if err != nil {
			return 0, err
		}
		text = *s
	default:
		return 0, refusal.New(refusal.InvalidRequest, "%s is a JSON %s: expected %s", name, kind, amountText)
	}
	amount, fault := parseAmount(text)
	if fault != "" {
		return 0, refusal.New(refusal.InvalidSwap, "%s is not an amount: expected %s; received a %s %s", name, amountText, kind, fault)
	}
	return amount, nil
}

const amountText = "a whole number from 1 to 18446744073709551615 in the output mint's smallest unit, as a JSON number or a string, in decimal digits alone"

// parseAmount returns the amount. If the text is not an amount, fault says why, as the end of a
// phrase such as "received a number with a sign".
func parseAmount(text string) (amount uint64, fault string) {
	if len(text) > maxAmountLength {
		return 0, "of " + strconv.Itoa(len(text)) + " characters"
	}
	nonDigit := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	switch {
	case text == "":
		return 0, "that is empty"
	case text[0] == '-':
		return 0, "that is negative or begins with a minus"
	case nonDigit >= 0 && strings.Trim(text, "0123456789.eE+-") != "":
		return 0, "with other characters than digits"
	case strings.ContainsAny(text, "eE"):
		return 0, "with an exponent"
	case strings.Contains(text, "."):
		return 0, "with a fraction"
	case nonDigit >= 0:
		return 0, "with a sign"
	case text == "0":
		return 0, "that is zero"
	case text[0] == '0':
		return 0, "with a leading zero"
	}
	amount, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, "that is larger, of " + strconv.Itoa(len(text)) + " digits"
	}
	return amount, ""
}
