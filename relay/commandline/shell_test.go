package commandline_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/commandline"
)

// shellCommands is a program with every kind of word that can be completed.
type shellCommands struct {
	Kubeconfig string `help:"Cluster. More about it." placeholder:"FILE" env:"T_KUBECONFIG"`
	Verbose    bool   `short:"v" help:"Say more."`
	Show       struct {
		Name   string `arg:"" help:"Name."`
		Output string `short:"o" enum:"text,json" default:"text" help:"Format."`
		Secret string `hidden:"" help:"Hidden."`
	} `cmd:"" help:"Show one. It says more with -v."`
	Keys struct {
		Make struct {
			Into string `placeholder:"FILE" help:"Where to."`
		} `cmd:"" help:".Make a key with a \\ in it."`
		List struct{} `cmd:"" help:"List keys."`
	} `cmd:"" help:"Commands for keys."`
	Old struct{} `cmd:"" hidden:"" help:"Hidden."`

	commandline.Common `embed:""`
}

func runShell(t *testing.T, args ...string) string {
	t.Helper()
	var out, stderr strings.Builder
	p := &commandline.Program{Name: "pro-gram", Description: "It tests. It does nothing else.", Out: &out, Err: &stderr}
	if code := p.Run(&shellCommands{}, args, func([]error) any { return new(int) }); code != 0 {
		t.Fatalf("%q: exit code %d, want 0: %s", args, code, stderr.String())
	}
	return out.String()
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		words []string
		want  string
	}{
		"no word":                                 {nil, "show\tShow one\nkeys\tCommands for keys\nversion\tPrint version and build\ncompletion\tPrint a script with which a shell completes commands and flags\nman\tPrint the manual page, for man\n:4\n"},
		"a part of a command":                     {[]string{"sh"}, "show\tShow one\n:4\n"},
		"a command below another":                 {[]string{"keys", ""}, "make\t.Make a key with a \\ in it\nlist\tList keys\n:4\n"},
		"a command after a flag with a value":     {[]string{"--kubeconfig", "show", "ke"}, "keys\tCommands for keys\n:4\n"},
		"a command after a flag without a value":  {[]string{"-v", "ke"}, "keys\tCommands for keys\n:4\n"},
		"a command after a flag and its value":    {[]string{"--kubeconfig=show", "ke"}, "keys\tCommands for keys\n:4\n"},
		"a flag of a command and those above":     {[]string{"show", "x", "--"}, "--help\tShow context-sensitive help\n--kubeconfig\tCluster\n--verbose\tSay more\n--output\tFormat\n:4\n"},
		"a part of a flag":                        {[]string{"show", "--o"}, "--output\tFormat\n:4\n"},
		"a value of a few":                        {[]string{"show", "--output", ""}, "text\t\njson\t\n:4\n"},
		"a value of a few after a short flag":     {[]string{"show", "-o", "j"}, "json\t\n:4\n"},
		"a value of a few after =":                {[]string{"show", "--output=j"}, "--output=json\t\n:4\n"},
		"a value of a few as bash splits it":      {[]string{"show", "--output", "=", "j"}, "json\t\n:4\n"},
		"an empty value as bash splits it":        {[]string{"show", "--output", "="}, "text\t\njson\t\n:4\n"},
		"a value of an unknown flag":              {[]string{"show", "--unknown=j"}, ":4\n"},
		"a file":                                  {[]string{"--kubeconfig", ""}, ":0\n"},
		"a value that is neither":                 {[]string{"show", ""}, ":4\n"},
		"an argument of a few":                    {[]string{"completion", "z"}, "zsh\t\n:4\n"},
		"help among the words":                    {[]string{"keys", "--help", "l"}, "list\tList keys\n:4\n"},
		"nothing after a command without another": {[]string{"keys", "list", ""}, ":4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, runShell(t, append([]string{"__complete"}, tt.words...)...)); diff != "" {
				t.Errorf("candidates of %q (-want +got):\n%s", tt.words, diff)
			}
		})
	}
}

// bash runs its script with a program that prints the words that it gets.
func TestBashRunsItsScript(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("the machine has no bash")
	}
	dir := t.TempDir()
	program := "#!/bin/sh\nshift\nfor word; do printf '[%s]\\tabout it\\n' \"$word\"; done\necho :4\n"
	if err := os.WriteFile(filepath.Join(dir, "pro-gram"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	script := runShell(t, "completion", "bash") + `
COMP_WORDS=(` + filepath.Join(dir, "pro-gram") + ` show --output = "j" rest); COMP_CWORD=4
_pro_gram
printf '%s\n' "${COMPREPLY[@]}"
complete -p pro-gram
`
	out, err := exec.CommandContext(t.Context(), bash, "--noprofile", "--norc", "-euo", "pipefail", "-c", script).CombinedOutput()
	if diff := cmp.Diff("[show]\n[--output]\n[=]\n[j]\ncomplete -F _pro_gram pro-gram\n", string(out)); err != nil || diff != "" {
		t.Errorf("error %v, output (-want +got):\n%s", err, diff)
	}
}

func TestEveryShellHasAScript(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := runShell(t, "completion", shell)
		if !strings.Contains(script, "_pro_gram") || !strings.Contains(script, "__complete") || strings.Contains(script, "{{") {
			t.Errorf("the script of %s lacks a name: %s", shell, script)
		}
	}
}

func TestManualPage(t *testing.T) {
	t.Parallel()
	page := runShell(t, "man")
	for _, want := range []string{
		`.TH PRO\-GRAM 1 "" "relaypool `, `pro\-gram \- It tests`, ".SS show <name> [flags]", ".B \\-\\-kubeconfig=FILE\nCluster. More about it. [$T_KUBECONFIG]", ".B \\-o, \\-\\-output=\"text\"",
		`\&.Make a key with a \e in it.`, ".SH ENVIRONMENT\n.TP\n.B T_KUBECONFIG\n", ".SH EXIT STATUS",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	for _, hidden := range []string{"Hidden", "__complete"} {
		if strings.Contains(page, hidden) {
			t.Errorf("the page has %s, which is hidden", hidden)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Log("the machine has no groff: the page was not formatted")
		return
	}
	check := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-ww", "-z")
	check.Stdin = strings.NewReader(page)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: error %v, warnings %s", err, out)
	}
}
