package config_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/config"
)

//go:generate go test -run ^TestTheReferenceIsCurrent$ . -update

var update = flag.Bool("update", false, "write docs/configuration.md anew")

const reference = "../../../docs/configuration.md"

func TestTheReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&config.Serve{}, commandline.NewMalformed().Options()...)
	if err != nil {
		t.Fatal(err)
	}
	want := writeReference(parser.Model.Flags)
	if *update {
		if err := os.MkdirAll(filepath.Dir(reference), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(reference, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/configuration.md is not current, run go generate ./relay/internal/config (-want +got):\n%s", diff)
	}
}

const introduction = `# Configuration

<!-- Generated from the flags by go generate ./relay/internal/config. Do not edit. -->

The settings of ` + "`relay serve`" + `, by flag or by the environment variable beside it;
the flag wins. ` + "`relay --help`" + ` explains them and every other command:
` + "`relay migrate`" + ` and ` + "`relay compliance export`" + ` take those under Database and Log.

A configuration is checked whole at start: every problem is listed at once, none
repeats a value, and the command ends with code 2. One that fails later ends
with 1.

Secrets are read from files only, so that no list of processes and no
environment shows them: the database's URL, an RPC or router URL with credentials,
the router's API key, the fee payers' keys. White space around a file's content
does not matter.

Several RPC endpoints are listed in a file, YAML or JSON. Each is known by its
name, which is all of it that logs, metrics and ` + "`GET /health`" + ` tell. Paths begin at
the list's own folder.

` + "```yaml" + `
- name: provider-a # lower-case letters, digits and hyphens
  urlFile: provider-a.url # or url:, when the list itself is a secret or nothing in it is
  requestsPerSecond: 50 # of this process; 0, which is the default, for no limit
- name: provider-b
  url: https://rpc.provider-b.example
  websocketURL: none # by default worked out from the URL; notifications only bring polls forward
  roles: [read, submit] # by default all of read, submit and archive
- name: old-history
  url: http://archive.internal:8899
  roles: [archive] # asked first for blocks, histories and lost signatures
` + "```" + `
`

// writeReference writes the flags as Markdown, a table for each group.
func writeReference(flags []*kong.Flag) []byte {
	var groups []string
	rows := map[string][]string{}
	for _, f := range flags {
		if f.Name == "help" {
			continue
		}
		group := "Serving"
		if f.Group != nil {
			group = f.Group.Title
		}
		if rows[group] == nil {
			groups = append(groups, group)
		}
		rows[group] = append(rows[group], fmt.Sprintf("| %s | %s | %s | %s |\n",
			code("--"+f.Name+placeholder(f)), code(strings.Join(f.Envs, " ")), code(f.Default), f.Help))
	}
	var b bytes.Buffer
	b.WriteString(introduction)
	for _, group := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n| flag | variable | default | meaning |\n| --- | --- | --- | --- |\n", group)
		b.WriteString(strings.Join(rows[group], ""))
	}
	return b.Bytes()
}

func placeholder(f *kong.Flag) string {
	if f.IsBool() {
		return ""
	}
	return " " + f.PlaceHolder
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
