// Package commandline reads the commands, flags and variables of relaypool's programs. It
// reports everything that is wrong with them at once, without a value that may be a secret.
package commandline

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// The exit codes distinguish a command that is used wrongly from one that failed.
const (
	ExitFailed = 1
	ExitUsage  = 2
)

// ErrUsage marks an error that the user has to correct, in flags or files. Problems is always
// such an error, and needs no mark.
var ErrUsage = errors.New("wrong use")

// Coded is an error with its own exit code.
type Coded interface {
	error
	ExitCode() int
}

// Program is a program with commands.
type Program struct {
	Name, Description string
	// Out and Err receive output and errors.
	Out, Err io.Writer
}

// Common holds the commands that every program has. A program embeds it after its own commands.
type Common struct {
	Version    versionCmd    `cmd:"" help:"Print version and build."`
	Completion completionCmd `cmd:"" help:"Print a script with which a shell completes commands and flags."`
	Man        manCmd        `cmd:"" help:"Print the manual page, for man."`
	Complete   completeCmd   `cmd:"" hidden:"" passthrough:"" name:"__complete" help:"Print the candidates for the last of the words. The scripts of completion call it, and kubectl for plugins."`
}

// Run parses args into commands, a pointer to kong's structure, runs the command that args
// name, and returns the exit code. Values that do not parse do not stop the command. bind gets
// their errors and returns the argument of the command's Run, which can then report them
// together with its other problems.
func (p *Program) Run(commands any, args []string, bind func(malformed []error) any) (code int) {
	command, malformed, err := p.Parse(commands, args)
	if command != nil {
		err = command.Run(bind(malformed))
	}
	var problems Problems
	var coded Coded
	switch {
	case err == nil:
		return 0
	// This case stands before Coded, because kong's errors have exit codes that are not used.
	case errors.As(err, &problems), errors.Is(err, ErrUsage):
		code = ExitUsage
	case errors.As(err, &coded):
		code = coded.ExitCode()
	default:
		code = ExitFailed
	}
	fmt.Fprintf(p.Err, "%s: %v\n", p.Name, err)
	return code
}

// Parse parses args into commands. If args ask for help, it prints the help and returns neither a
// command nor an error. Its errors repeat nothing from args.
func (p *Program) Parse(commands any, args []string) (command *kong.Context, malformed []error, err error) {
	helpPrinted := false
	malformedValues := NewMalformed()
	parser, err := kong.New(commands, append(malformedValues.Options(),
		kong.Name(p.Name), kong.Description(p.Description),
		kong.Writers(p.Out, p.Err), kong.Exit(func(int) { helpPrinted = true }),
		kong.Help(help), kong.ValueFormatter(describe), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}))...)
	if err != nil {
		return nil, nil, fmt.Errorf("read the commands' definition: %w", err)
	}
	command, err = parser.Parse(args)
	switch {
	case helpPrinted:
		return nil, nil, nil
	case err != nil:
		return nil, nil, p.usage(err)
	default:
		return command, malformedValues.Of(command.Flags()), nil
	}
}

// usage marks kong's error with ErrUsage. It replaces the error for an argument that no command
// accepts: kong's text repeats the argument, which may be a secret that belongs in a flag's file.
func (p *Program) usage(err error) error {
	if strings.HasPrefix(err.Error(), "unexpected argument") {
		err = errors.New("expected a command and its flags, received an argument that is neither")
	}
	return fmt.Errorf("%w: %w; %s --help explains every command and flag", ErrUsage, err, p.Name)
}

// help prints the help of the selected command or, if none is selected, of all commands.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || ctx.Selected() != nil {
		return err
	}
	for _, command := range ctx.Model.Leaves(true) {
		sub, err := kong.Trace(ctx.Kong, strings.Fields(command.FullPath())[1:])
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

// describe returns the help of a flag or an argument, with its default and its variable.
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
