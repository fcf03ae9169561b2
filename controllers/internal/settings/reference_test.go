package settings

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/commandline"
)

//go:generate go test -run ^TestTheReferenceIsCurrent$ . -update

var update = flag.Bool("update", false, "write docs/operator.md anew")

const reference = "../../../docs/operator.md"

func TestTheReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&Run{}, commandline.NewMalformed().Options()...)
	if err != nil {
		t.Fatal(err)
	}
	want := writeReference(t, parser.Model.Flags)
	if *update {
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
		t.Errorf("docs/operator.md is not current, run go generate ./controllers/internal/settings (-want +got):\n%s", diff)
	}
}

// writeReference writes introduction.md, and behind it the flags as Markdown, a
// table for each group.
func writeReference(t *testing.T, flags []*kong.Flag) []byte {
	t.Helper()
	introduction, err := os.ReadFile("testdata/introduction.md")
	if err != nil {
		t.Fatal(err)
	}
	var groups []string
	rows := map[string][]string{}
	for _, f := range flags {
		if f.Name == "help" {
			continue
		}
		group := f.Group.Title
		if rows[group] == nil {
			groups = append(groups, group)
		}
		rows[group] = append(rows[group], fmt.Sprintf("| %s | %s | %s | %s |\n",
			code("--"+f.Name+placeholder(f)), code(strings.Join(f.Envs, " ")), code(f.Default), f.Help))
	}
	var b bytes.Buffer
	b.Write(introduction)
	for _, group := range groups {
		fmt.Fprintf(&b, "\n### %s\n\n| flag | variable | default | meaning |\n| --- | --- | --- | --- |\n", group)
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
