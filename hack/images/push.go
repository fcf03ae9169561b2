package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/relaypool/relaypool/hack/images/internal/archive"
)

// push publishes an OCI layout under the names that it was built with. A tag that
// is taken by something else stays as it is: who pulled it must get the same again.
func push(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("images push", flag.ContinueOnError)
	flags.SetOutput(stderr)
	oci := flags.String("oci", "", "`folder` that build -oci wrote (required)")
	if err := parse(flags, args); err != nil {
		return err
	}
	if *oci == "" {
		return errors.New("-oci is missing: name the folder that `images build -oci` wrote")
	}
	indexes, err := archive.ReadLayout(*oci)
	if err != nil {
		return err
	}
	// Credentials are those of `docker login` or `podman login`.
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	for _, t := range indexes {
		digest, err := t.Index.Digest()
		if err != nil {
			return fmt.Errorf("take the digest of %s: %w", t.Tag, err)
		}
		there, err := remote.Head(t.Tag, options...)
		switch {
		case err != nil && !isAbsent(err):
			return fmt.Errorf("look whether %s is published: %w", t.Tag, err)
		case err == nil && there.Digest != digest:
			return fmt.Errorf("publish %s: it is published as %s, and this one is %s; a published version never changes, so raise contract.Version", t.Tag, there.Digest, digest)
		case err != nil:
			if err := remote.WriteIndex(t.Tag, t.Index, options...); err != nil {
				return fmt.Errorf("publish %s: %w", t.Tag, err)
			}
		}
		fmt.Fprintf(stdout, "%s@%s\n", t.Tag, digest)
	}
	return nil
}

// isAbsent tells a name that a registry does not have from one that it refuses.
func isAbsent(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}
