package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"

	"github.com/relaypool/relaypool/hack/images/internal/product"
	"github.com/relaypool/relaypool/hack/images/internal/program"
)

// files writes the files of one image into a folder.
func files(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("images rootfs", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", "../..", "`folder` of the checkout")
	wanted := flags.String("image", "", "`name` of the image, operator or relay (required)")
	out := flags.String("out", "", "`folder` for the files, which must be empty or not there (required)")
	platform := flags.String("platform", "linux/"+runtime.GOARCH, "`platform`: linux/amd64 or linux/arm64")
	if err := parse(flags, args); err != nil {
		return err
	}
	if *out == "" {
		return errors.New("-out is missing: name the folder for the files")
	}
	p, err := product.Named(*wanted)
	if err != nil {
		return fmt.Errorf("-image: %w", err)
	}
	target, err := program.ParsePlatform(*platform)
	if err != nil {
		return fmt.Errorf("-platform: %w", err)
	}
	return withCheckout(*root, func(c product.Checkout) error {
		tree, err := c.Files(ctx, p, target)
		if err != nil {
			return err
		}
		if err := tree.WriteTo(*out); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s: the files of %s for %s\n", *out, p.Name, target)
		return nil
	})
}
