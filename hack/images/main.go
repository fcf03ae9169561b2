// Command images builds the project's container images without a container engine. build
// makes the images of a release, e2e those of the end-to-end suite, and rootfs one image's
// files for the Dockerfile. push publishes images; notes prints the changelog of the version.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// tool is one run of a command, with its flags.
type tool struct {
	*source
	out, registry, platform, image, tag string
	oci                                 []string
	filesOnly                           bool
	stdout                              io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	t := &tool{stdout: stdout}
	commands := map[string]func(context.Context) error{"build": t.build, "e2e": t.e2e, "rootfs": t.rootfs, "push": t.push, "notes": t.notes}
	if len(args) == 0 || commands[args[0]] == nil {
		return fmt.Errorf("want build, e2e, rootfs, push or notes, got %q; each has -h", args)
	}
	flags := flag.NewFlagSet("images "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", "../..", "build, e2e, rootfs, notes: `folder` of the checkout")
	flags.StringVar(&t.out, "out", "", "build, e2e, rootfs: `folder` to write to (bin/images of the checkout, for e2e its folder e2e; rootfs requires a new one)")
	flags.StringVar(&t.registry, "registry", "ghcr.io/relaypool", "build: `registry` and folder that the images' names start with")
	flags.StringVar(&t.platform, "platform", "linux/amd64", "build, rootfs: `platforms`, separated by commas: linux/amd64, linux/arm64")
	flags.StringVar(&t.image, "only", "", "build, e2e: `name` of the one image to build")
	flags.StringVar(&t.image, "image", "", "rootfs: `name` of the image")
	flags.StringVar(&t.tag, "tag", "", "notes: git `tag` of the release, such as v1.2.3")
	flags.Func("oci", "build, push: `folder` of an OCI layout with an index for each image; can be repeated", func(folder string) error {
		t.oci = append(t.oci, folder)
		return nil
	})
	err := flags.Parse(args[1:])
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%s: want flags only, got %q", flags.Name(), flags.Arg(0))
	}
	if err == nil && args[0] != "push" {
		t.source, err = readSource(ctx, *root)
	}
	if err != nil {
		return err
	}
	return commands[args[0]](ctx)
}

// notes prints the text below the version's heading in the changelog. It refuses a tag that
// does not match contract.Version, which images and programs report.
func (t *tool) notes(context.Context) error {
	if t.tag != "v"+t.version {
		return fmt.Errorf("-tag is %q, and contract.Version says %s: want v%s", t.tag, t.version, t.version)
	}
	section := regexp.MustCompile(`(?ms)^## \[` + regexp.QuoteMeta(t.version) + `\][^\n]*$(.*?)(?:^## \[|^\[[^\]\n]+\]: https://|\z)`)
	notes, _ := match(filepath.Join(t.root, "CHANGELOG.md"), section)
	if notes = strings.TrimSpace(notes); notes == "" {
		return fmt.Errorf("the changelog has no version %s: before you tag, rename [Unreleased] to ## [%s] - with the date", t.version, t.version)
	}
	fmt.Fprintln(t.stdout, notes)
	return nil
}
