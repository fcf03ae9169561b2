package commandline

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// writeManualPage writes a page for man, in roff with the macros of man(7).
func writeManualPage(w io.Writer, app *kong.Application, version string) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"relaypool %s\" \"relaypool\"\n", roff(strings.ToUpper(app.Name)), roff(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(app.Name), roff(firstSentence(app.Help)))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I command\n.RI [ flags ]\n", roff(app.Name))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(app.Help))
	writeFlags(&b, ".SH FLAGS OF EVERY COMMAND\n", app.Node)
	b.WriteString(".SH COMMANDS\n")
	for _, command := range app.Leaves(true) {
		fmt.Fprintf(&b, ".SS %s\n%s\n", roff(command.Summary()), roff(command.Help))
		for _, argument := range command.Positional {
			fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(argument.Name), roff(describe(argument)))
		}
		for node := command; node != nil && node.Type != kong.ApplicationNode; node = node.Parent {
			writeFlags(&b, "", node)
		}
	}
	writeVariables(&b, app.Leaves(true))
	fmt.Fprintf(&b, ".SH EXIT STATUS\n.TP\n.B 0\nThe command did what it was asked for.\n.TP\n.B %d\nThe command failed, or what it checks is not as it should be. Some commands have further codes, which their texts above name.\n.TP\n.B %d\nThe command was used wrongly: flags or files have to be corrected.\n", ExitFailed, ExitUsage)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFlags writes the flags that a command does not share with those above it.
func writeFlags(b *strings.Builder, title string, node *kong.Node) {
	for _, flag := range node.Flags {
		if flag.Hidden || node.Type != kong.ApplicationNode && flag.Name == "help" {
			continue
		}
		b.WriteString(title)
		title = ""
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(flag.String()), roff(describe(flag.Value)))
	}
}

// writeVariables lists the environment variables of all commands, with their flags.
func writeVariables(b *strings.Builder, commands []*kong.Node) {
	flags := map[string]string{}
	for _, command := range commands {
		for _, group := range command.AllFlags(true) {
			for _, flag := range group {
				for _, name := range flag.Envs {
					flags[name] = flag.Name
				}
			}
		}
	}
	title := ".SH ENVIRONMENT\n"
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		fmt.Fprintf(b, "%s.TP\n.B %s\nThe value of \\-\\-%s, where the flag is left out.\n", title, roff(name), roff(flags[name]))
		title = ""
	}
}

// roff quotes a text, so that it is printed as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
