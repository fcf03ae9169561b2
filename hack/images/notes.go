package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/relaypool/relaypool/hack/images/internal/changelog"
	"github.com/relaypool/relaypool/hack/images/internal/program"
)

// notes prints what the changelog says of the version, and refuses a tag that is
// not the version's: images and programs would say another one.
func notes(_ context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("images notes", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", "../..", "`folder` of the checkout")
	tag := flags.String("tag", "", "git `tag` of the release, such as v1.2.3 (required)")
	if err := parse(flags, args); err != nil {
		return err
	}
	version, err := program.Version(*root)
	if err != nil {
		return err
	}
	if *tag != "v"+version {
		return fmt.Errorf("-tag is %q, and contract.Version says %s: want v%s", *tag, version, version)
	}
	text, err := os.ReadFile(filepath.Join(*root, "CHANGELOG.md"))
	if err != nil {
		return fmt.Errorf("read the changelog: %w", err)
	}
	section, err := changelog.Section(string(text), version)
	if err != nil {
		return err
	}
	_, err = io.WriteString(stdout, section)
	return err
}
