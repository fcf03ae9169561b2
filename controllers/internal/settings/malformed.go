package settings

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/relaypool/relaypool/relay/contract"
)

// Malformed collects the values that do not parse, so that they are listed with
// every other problem: kong alone stops at the first.
type Malformed struct{ found map[*kong.Value]error }

// NewMalformed gives an empty collection.
func NewMalformed() *Malformed { return &Malformed{found: map[*kong.Value]error{}} }

// Options make kong leave what does not parse to the collection.
func (m *Malformed) Options() []kong.Option {
	return []kong.Option{
		decode(m, "a whole number", strconv.Atoi),
		decode(m, "a duration such as 30s or 1m30s", time.ParseDuration),
		kong.KindMapper(reflect.Bool, boolean{m}),
	}
}

// Of gives the problems with the flags, in their order. A variable counts even
// where a flag overrides it.
func (m *Malformed) Of(flags []*kong.Flag) []error {
	var problems []error
	for _, f := range flags {
		if err := m.found[f.Value]; err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// decode maps values of type T. A value that does not parse is noted, and the
// default stands in for it, so that it is not reported again for its range.
func decode[T any](m *Malformed, want string, parse func(string) (T, error)) kong.Option {
	return kong.TypeMapper(reflect.TypeFor[T](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		token, err := ctx.Scan.PopValue(want)
		if err != nil {
			return err
		}
		value, err := parse(token.String())
		if err != nil {
			m.note(ctx.Value, want, token.String())
			if value, err = parse(ctx.Value.Default); err != nil {
				return fmt.Errorf("default is not %s", want)
			}
		}
		target.Set(reflect.ValueOf(value))
		return nil
	}))
}

func (m *Malformed) note(v *kong.Value, want, received string) {
	m.found[v] = problem(v.Name, "expected %s, received %d characters that are not", want, len(received))
}

// boolean maps flags that need no value.
type boolean struct{ *Malformed }

// Decode implements kong.Mapper.
func (b boolean) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		target.SetBool(true)
		return nil
	}
	text := ctx.Scan.Pop().String()
	value, err := strconv.ParseBool(text)
	if err != nil {
		b.note(ctx.Value, "true or false", text)
	}
	target.SetBool(value)
	return nil
}

// IsBool implements kong.BoolMapper.
func (boolean) IsBool() bool { return true }

// setting names a flag and its variable.
func setting(flag string) string {
	return "--" + flag + " ($" + contract.VariablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) + ")"
}

func problem(flag, format string, args ...any) error {
	return fmt.Errorf("%s: %w", setting(flag), fmt.Errorf(format, args...))
}

// Problems is everything that is wrong with a configuration.
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

// Unwrap gives the problems.
func (p Problems) Unwrap() []error { return p }
