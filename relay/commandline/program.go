// Package commandline is what relaypool's programs have in common: how they read
// their commands, flags and variables, tell everything that is wrong with them at
// once and without a value that may be a secret, and end.
package commandline

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// Exit codes: a command that is used wrongly is told from one that failed.
const (
	ExitFailed = 1
	ExitUsage  = 2
)

// ErrUsage marks what whoever ran the command has to change, flags or files.
// Problems need no mark.
var ErrUsage = errors.New("wrong use")

// Coded is an error with an exit code of its own.
type Coded interface {
	error
	ExitCode() int
}

// Program is one that has commands.
type Program struct {
	Name, Description string
	// Out and Err take what is asked for, and what is wrong.
	Out, Err io.Writer
}

// Run parses args into commands, a pointer to kong's structure, runs the command
// that they name and gives the exit code. bind makes what the command's Run is
// given of the values that do not parse, which belong among its other problems.
func (p *Program) Run(commands any, args []string, bind func(malformed []error) any) (code int) {
	command, malformed, err := p.Parse(commands, args)
	if command != nil {
		err = command.Run(bind(malformed))
	}
	var problems Problems
	var own Coded
	switch {
	case err == nil:
		return 0
	case errors.As(err, &problems), errors.Is(err, ErrUsage): // kong's errors have codes of their own, which nobody knows
		code = ExitUsage
	case errors.As(err, &own):
		code = own.ExitCode()
	default:
		code = ExitFailed
	}
	fmt.Fprintf(p.Err, "%s: %v\n", p.Name, err)
	return code
}

// Parse parses args into commands. Without an error and a command it has printed
// the help that was asked for. Its errors repeat nothing of args.
func (p *Program) Parse(commands any, args []string) (command *kong.Context, malformed []error, err error) {
	helped := false
	found := NewMalformed()
	parser, err := kong.New(commands, append(found.Options(),
		kong.Name(p.Name), kong.Description(p.Description),
		kong.Writers(p.Out, p.Err), kong.Exit(func(int) { helped = true }),
		kong.Help(help), kong.ValueFormatter(describe), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}))...)
	if err != nil {
		return nil, nil, fmt.Errorf("read the commands' definition: %w", err)
	}
	command, err = parser.Parse(args)
	switch {
	case helped:
		return nil, nil, nil
	case err != nil:
		return nil, nil, p.usage(err)
	default:
		return command, found.Of(command.Flags()), nil
	}
}

// usage gives kong's error, but for an argument that no command takes: kong
// repeats it, and it may be a secret that a flag's file should hold.
func (p *Program) usage(err error) error {
	if strings.HasPrefix(err.Error(), "unexpected argument") {
		err = errors.New("expected a command and its flags, received an argument that is neither")
	}
	return fmt.Errorf("%w: %w; %s --help explains every command and flag", ErrUsage, err, p.Name)
}

// help prints a command's help, and without a command that of all of them.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || ctx.Selected() != nil {
		return err
	}
	for _, leaf := range ctx.Model.Leaves(true) {
		sub, err := kong.Trace(ctx.Kong, strings.Fields(leaf.FullPath())[1:])
		if err != nil {
			return err
		}
		fmt.Fprintf(ctx.Stdout, "\n\n")
		if err := kong.DefaultHelpPrinter(options, sub); err != nil {
			return err
		}
	}
	return nil
}

// describe is a flag's or an argument's help, with its default and its variable.
func describe(v *kong.Value) string {
	text := v.Help
	if v.HasDefault {
		text += " Default: " + v.Default + "."
	}
	for _, name := range v.Tag.Envs {
		text += " [$" + name + "]"
	}
	return text
}
