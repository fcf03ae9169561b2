package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// push publishes OCI layouts under the names that their annotations have. It never replaces a
// published image, because a name must always mean the same image. It checks every name first,
// because a half-published release could neither be completed nor withdrawn.
func (t *tool) push(ctx context.Context) error {
	if len(t.oci) == 0 {
		return errors.New("-oci is missing: name the folder that `images build -oci` wrote")
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)} // the credentials of `docker login`
	missing, published := map[name.Reference]remote.Taggable{}, ""
	var refused error
	for _, folder := range t.oci {
		var manifest *v1.IndexManifest
		root, err := layout.ImageIndexFromPath(folder)
		if err == nil {
			manifest, err = root.IndexManifest()
		}
		if err != nil {
			return fmt.Errorf("read the OCI layout %s: %w", folder, err)
		}
		for _, d := range manifest.Manifests {
			tag, err := name.NewTag(d.Annotations[containerdName], name.StrictValidation)
			if err != nil {
				return fmt.Errorf("read the OCI layout %s: %s has no valid name in the annotation %s: %w", folder, d.Digest, containerdName, err)
			}
			existing, err := remote.Head(tag, options...)
			if answer := (*transport.Error)(nil); errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
				if missing[tag], err = root.Image(d.Digest); d.MediaType.IsIndex() { // otherwise it is a chart
					missing[tag], err = root.ImageIndex(d.Digest)
				}
			} else if err == nil && existing.Digest != d.Digest {
				err = fmt.Errorf("the published digest is %s, and this build's is %s; a published version never changes, so raise contract.Version", existing.Digest, d.Digest)
			}
			if err != nil {
				refused = errors.Join(refused, fmt.Errorf("publish %s: %w", tag, err))
			}
			published += fmt.Sprintf("%s@%s\n", tag, d.Digest)
		}
	}
	if refused == nil {
		refused = remote.MultiWrite(missing, options...)
	}
	if refused == nil {
		fmt.Fprint(t.stdout, published)
	}
	return refused
}
