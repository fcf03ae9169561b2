package commandline

import (
	"fmt"
	"strings"

	"github.com/relaypool/relaypool/relay/contract"
)

// Problems lists everything that is wrong with a configuration.
type Problems []error

// Error lists the problems, one a line.
func (p Problems) Error() string {
	var b strings.Builder
	if len(p) == 1 {
		b.WriteString("the configuration has a problem:")
	} else {
		fmt.Fprintf(&b, "the configuration has %d problems:", len(p))
	}
	for _, problem := range p {
		b.WriteString("\n  " + problem.Error())
	}
	return b.String()
}

// Unwrap returns the problems.
func (p Problems) Unwrap() []error { return p }

// Setting names a flag and its environment variable.
func Setting(flag string) string {
	return "--" + flag + " ($" + contract.VariablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) + ")"
}

// Problem is the error of a flag that also has an environment variable.
func Problem(flag, format string, args ...any) error {
	return fmt.Errorf("%s: %w", Setting(flag), fmt.Errorf(format, args...))
}
