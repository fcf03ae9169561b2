// Command package packages charts/relaypool for a release: the archive that helm
// installs, and an OCI layout of it for `images push`. SOURCE_DATE_EPOCH, in seconds since
// 1970, is the time of both.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/relaypool/relaypool/hack/chart/pack"
)

func main() {
	root := flag.String("root", "../..", "`folder` of the checkout")
	out := flag.String("out", "../../bin/charts", "`folder` for the archive, and for the OCI layout in its folder oci")
	repository := flag.String("registry", "ghcr.io/relaypool/charts", "`registry` and folder that the chart's name starts with")
	flag.Parse()
	if err := run(*root, *out, *repository, os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

func run(root, out, repository, epoch string) error {
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return fmt.Errorf("SOURCE_DATE_EPOCH is %q, want seconds since 1970, such as the output of `git log -1 --format=%%ct`", epoch)
	}
	at := time.Unix(seconds, 0).UTC()
	archive, err := pack.Archive(filepath.Join(root, "charts", "relaypool"), out, at)
	if err != nil {
		return err
	}
	tag, digest, err := pack.Layout(archive, repository, filepath.Join(out, "oci"), at)
	if err != nil {
		return err
	}
	fmt.Printf("%s  %s  %s\n", archive, tag, digest)
	return nil
}
