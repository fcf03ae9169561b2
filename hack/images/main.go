// Command images builds the project's container images without a container
// engine: the release's, those of the end-to-end suite, and the files of an image
// for tools that build it in another way.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `images builds the project's container images without a container engine.

  images build    the images of a release, as archives, with SBOMs and digests
  images e2e      the images of the end-to-end suite
  images rootfs   the files of one image, in a folder
  images push     publishes what build -oci wrote
  images notes    what the changelog says of the version, for its tag

images COMMAND -h lists a command's flags.
`

// command runs one command with the arguments after its name.
type command func(ctx context.Context, args []string, stdout, stderr io.Writer) error

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	commands := map[string]command{"build": build, "e2e": e2e, "rootfs": files, "push": push, "notes": notes}
	if len(args) == 0 {
		return fmt.Errorf("want a command, got none\n\n%s", usage)
	}
	if args[0] == "-h" || args[0] == "--help" || args[0] == "help" {
		_, err := io.WriteString(stdout, usage)
		return err
	}
	run, found := commands[args[0]]
	if !found {
		return fmt.Errorf("unknown command %q\n\n%s", args[0], usage)
	}
	return run(ctx, args[1:], stdout, stderr)
}
