package commandline

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// Malformed collects the errors of values that do not parse, so that they are listed with
// every other problem: kong alone stops at the first one, and repeats the value.
type Malformed struct{ errors map[*kong.Value]error }

// NewMalformed makes an empty collection.
func NewMalformed() *Malformed { return &Malformed{errors: map[*kong.Value]error{}} }

// Options make kong add values that do not parse to the collection.
func (m *Malformed) Options() []kong.Option {
	return []kong.Option{
		decode(m, "a whole number of 0 or more", func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }),
		decode(m, "a whole number", strconv.Atoi),
		decode(m, "a whole number", func(s string) (int32, error) {
			n, err := strconv.ParseInt(s, 10, 32)
			return int32(n), err
		}),
		decode(m, "a duration such as 30s or 1m30s", time.ParseDuration),
		kong.KindMapper(reflect.Bool, boolean{m}),
	}
}

// Of returns the problems of the flags, in their order. It includes a malformed environment
// variable even if a flag overrides the variable.
func (m *Malformed) Of(flags []*kong.Flag) []error {
	var problems []error
	for _, f := range flags {
		if err := m.errors[f.Value]; err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// decode makes kong decode values of type T with parse. It records a value that does not parse,
// and replaces it by the default, so that no later check of its range reports it again.
func decode[T any](m *Malformed, want string, parse func(string) (T, error)) kong.Option {
	return kong.TypeMapper(reflect.TypeFor[T](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		token, err := ctx.Scan.PopValue(want)
		if err != nil {
			return err
		}
		value, err := parse(token.String())
		if err != nil {
			m.record(ctx.Value, want, token.String())
			if value, err = parse(ctx.Value.Default); err != nil {
				return fmt.Errorf("default is not %s", want)
			}
		}
		target.Set(reflect.ValueOf(value))
		return nil
	}))
}

func (m *Malformed) record(v *kong.Value, want, received string) {
	m.errors[v] = Problem(v.Name, "expected %s, received %d characters that are not", want, len(received))
}

// boolean decodes boolean flags, whose value may be left out.
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
		b.record(ctx.Value, "true or false", text)
	}
	target.SetBool(value)
	return nil
}

// IsBool implements kong.BoolMapper.
func (boolean) IsBool() bool { return true }
