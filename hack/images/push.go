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

// push publishes OCI layouts under the names that they were built with. A name that
// is taken by something else stays as it is: who pulled it must get the same again.
// Nothing is published before every name has been looked at, because half a release
// could neither be finished nor taken back.
func push(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("images push", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var folders []string
	flags.Func("oci", "`folder` that build -oci wrote, or make chart; required, and there may be several", func(folder string) error {
		folders = append(folders, folder)
		return nil
	})
	if err := parse(flags, args); err != nil {
		return err
	}
	if len(folders) == 0 {
		return errors.New("-oci is missing: name the folder that `images build -oci` wrote")
	}
	var all []archive.Tagged
	for _, folder := range folders {
		found, err := archive.ReadLayout(folder)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	// Credentials are those of `docker login` or `podman login`.
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	missing, err := unpublished(all, options)
	if err != nil {
		return err
	}
	pusher, err := remote.NewPusher(options...)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	for _, t := range missing {
		if err := pusher.Push(ctx, t.Tag, t.Content()); err != nil {
			return fmt.Errorf("publish %s: %w", t.Tag, err)
		}
	}
	for _, t := range all {
		digest, err := t.Content().Digest()
		if err != nil {
			return fmt.Errorf("take the digest of %s: %w", t.Tag, err)
		}
		fmt.Fprintf(stdout, "%s@%s\n", t.Tag, digest)
	}
	return nil
}

// unpublished gives what the registry does not have. Names that are taken by
// something else are an error that names them all.
func unpublished(all []archive.Tagged, options []remote.Option) (missing []archive.Tagged, err error) {
	var taken []error
	for _, t := range all {
		digest, err := t.Content().Digest()
		if err != nil {
			return nil, fmt.Errorf("take the digest of %s: %w", t.Tag, err)
		}
		there, err := remote.Head(t.Tag, options...)
		switch {
		case err != nil && !isAbsent(err):
			return nil, fmt.Errorf("look whether %s is published: %w", t.Tag, err)
		case err != nil:
			missing = append(missing, t)
		case there.Digest != digest:
			taken = append(taken, fmt.Errorf("publish %s: it is published as %s, and this one is %s; a published version never changes, so raise contract.Version", t.Tag, there.Digest, digest))
		}
	}
	return missing, errors.Join(taken...)
}

// isAbsent tells a name that a registry does not have from one that it refuses.
func isAbsent(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}
