package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/relaypool/relaypool/hack/images/internal/archive"
	"github.com/relaypool/relaypool/hack/images/internal/product"
	"github.com/relaypool/relaypool/hack/images/internal/program"
)

// e2e builds the images of the end-to-end suite, for clusters of this machine's
// architecture.
func e2e(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("images e2e", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", "../..", "`folder` of the checkout")
	out := flags.String("out", "../../bin/images/e2e", "`folder` for the archives")
	only := flags.String("only", "", "`name` of the one image to build")
	if err := parse(flags, args); err != nil {
		return err
	}
	platform, err := program.ParsePlatform("linux/" + runtime.GOARCH)
	if err != nil {
		return fmt.Errorf("build images for this machine: %w", err)
	}
	if err := os.MkdirAll(*out, 0o750); err != nil {
		return fmt.Errorf("make the folder for images: %w", err)
	}
	return withCheckout(*root, func(c product.Checkout) error {
		found := false
		for _, d := range product.DevelopmentImages() {
			if *only != "" && d.Name != *only {
				continue
			}
			found = true
			if err := develop(ctx, c, d, platform, *out, stdout); err != nil {
				return err
			}
		}
		if !found {
			return fmt.Errorf("-only %q: want localnet, gate or postgres", *only)
		}
		return nil
	})
}

func develop(ctx context.Context, c product.Checkout, d product.Development, platform program.Platform, out string, progress io.Writer) error {
	began := time.Now()
	img, err := c.BuildDevelopment(ctx, d, platform)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(d.Reference())
	if err != nil {
		return fmt.Errorf("name the image: %w", err)
	}
	file := filepath.Join(out, d.Name+".tar")
	if err := archive.Write(file, tag, img); err != nil {
		return err
	}
	fmt.Fprintf(progress, "%s  %s  %s  in %.1f s\n", file, d.Reference(), platform, time.Since(began).Seconds())
	return nil
}
