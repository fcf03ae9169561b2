// Command package packages charts/relaypool for a release: the archive that helm
// installs, and an OCI layout of it for `images push`.
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
	"syscall"

	"github.com/relaypool/relaypool/hack/chart/pack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH"), os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, epoch string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("package", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", "../..", "`folder` of the checkout")
	out := flags.String("out", "../../bin/charts", "`folder` for the archive, and for the OCI layout in its folder oci")
	repository := flags.String("registry", "ghcr.io/relaypool/charts", "`registry` and folder in it that the chart is named for")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("want flags only, got %q", flags.Arg(0))
	}
	at, err := pack.Time(ctx, *root, epoch)
	if err != nil {
		return err
	}
	archive, err := pack.Archive(filepath.Join(*root, "charts", "relaypool"), *out, at)
	if err != nil {
		return err
	}
	tag, digest, err := pack.Layout(ctx, archive, *repository, filepath.Join(*out, "oci"))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s  %s  %s\n", archive, tag, digest)
	return err
}
