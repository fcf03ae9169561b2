package commandline

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/relaypool/relaypool/relay/contract"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish. Load the script with: source <(PROGRAM completion bash); the same with zsh, after compinit; PROGRAM completion fish | source."`
}

//go:embed completion
var scripts embed.FS

// Run prints the script.
func (c *completionCmd) Run(ctx *kong.Context) error {
	script, err := scripts.ReadFile("completion/" + c.Shell)
	if err != nil {
		return fmt.Errorf("read the script: %w", err)
	}
	program := ctx.Model.Name
	function := "_" + strings.ReplaceAll(program, "-", "_")
	_, err = io.WriteString(ctx.Stdout, strings.NewReplacer("{{function}}", function, "{{program}}", program).Replace(string(script)))
	return err
}

type manCmd struct{}

// Run prints the page.
func (*manCmd) Run(ctx *kong.Context) error {
	return writeManualPage(ctx.Stdout, ctx.Model, contract.Version)
}

type completeCmd struct {
	Words []string `arg:"" optional:"" help:"The words after the program's name. The last one is completed, and may be empty."`
}

// Run prints the candidates in the form that kubectl expects of plugins: a line for each, with a
// description after a tab, and a last line that says whether a file may stand there, too.
func (c *completeCmd) Run(ctx *kong.Context) error {
	candidates, files := complete(ctx.Model.Node, c.Words)
	for _, candidate := range candidates {
		fmt.Fprintf(ctx.Stdout, "%s\t%s\n", candidate.text, candidate.description)
	}
	directive := ":4" // no file
	if files {
		directive = ":0"
	}
	_, err := fmt.Fprintln(ctx.Stdout, directive)
	return err
}
