package config

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "(secret)"

// Secret is a value that is never printed, logged or encoded.
type Secret struct {
	// reveal is a function because fmt prints the contents of unexported fields without
	// calling their methods.
	reveal func() string
}

// NewSecret makes a Secret of the value.
func NewSecret(value string) Secret { return Secret{func() string { return value }} }

// UnmarshalText makes a Secret of the text of a flag or a variable.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

// Reveal returns the value; empty for the zero Secret.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// Format writes a placeholder, for every verb.
func (Secret) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, redacted) // fmt has no way to report an error
}

// LogValue returns a placeholder.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns a placeholder, also for encoding/json.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
