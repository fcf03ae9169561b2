package main

import (
	"bytes"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layoutOf writes an OCI layout of an index for both platforms, or if chart is set, of a single
// manifest. Layouts with different texts have different digests.
func layoutOf(t *testing.T, tag name.Tag, text string, chart bool) (folder, digest string) {
	t.Helper()
	content, index := tree{}, v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, architecture := range []string{"amd64", "arm64"} {
		files, image := example(t, architecture, text, tag)
		maps.Copy(content, files)
		image.Annotations, image.Platform = nil, &v1.Platform{OS: "linux", Architecture: architecture}
		index.Manifests = append(index.Manifests, image)
	}
	listed := index.Manifests[0]
	if !chart {
		listed = add(content, index.MediaType, index)
	}
	list(content, named(listed, tag))
	folder = filepath.Join(t.TempDir(), "oci")
	if err := os.CopyFS(folder, content); err != nil {
		t.Fatal(err)
	}
	return folder, listed.Digest.String()
}

func TestAPublishedVersionNeverChanges(t *testing.T) {
	t.Parallel()
	tag := tagOf(t, registryOf(t), "relaypool/relay:1.2.3")
	folder, digest := layoutOf(t, tag, "one", false)
	for _, when := range []string{"the first time", "again, as after an interrupted release"} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{"push", "-oci", folder}, &out, io.Discard); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if want := tag.String() + "@" + digest + "\n"; out.String() != want {
			t.Errorf("%s push prints %q, want %q", when, out.String(), want)
		}
	}
	got, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := got.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		img, err := got.Image(m.Digest)
		if err != nil {
			t.Fatalf("the image for %s: %v", m.Platform, err)
		}
		if _, err := img.RawConfigFile(); err != nil {
			t.Errorf("the image for %s: %v", m.Platform, err)
		}
	}
	other, _ := layoutOf(t, tag, "two", false)
	err = run(t.Context(), []string{"push", "-oci", other}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "a published version never changes") || !strings.Contains(err.Error(), digest) {
		t.Errorf("push of another build: got error %v, want one with the published digest %s", err, digest)
	}
	if published, err := remote.Head(tag); err != nil || published.Digest.String() != digest {
		t.Errorf("after the refused push the tag has %v, error %v; want %s still", published, err, digest)
	}
}

// registryOf starts an empty registry and returns its address.
func registryOf(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func tagOf(t *testing.T, host, text string) name.Tag {
	t.Helper()
	tag, err := name.NewTag(host + "/" + text)
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

// A release publishes the images first and the chart last. If one name has another digest
// already, nothing is published.
func TestNothingIsPublishedIfOneDigestDiffers(t *testing.T) {
	t.Parallel()
	host := registryOf(t)
	operator, chart := tagOf(t, host, "relaypool/operator:1.2.3"), tagOf(t, host, "relaypool/charts/relaypool:1.2.3")
	images, digest := layoutOf(t, operator, "one", false)
	charts := func(text string) string {
		t.Helper()
		folder, _ := layoutOf(t, chart, text, true)
		return folder
	}
	first := charts("one")
	if err := run(t.Context(), []string{"push", "-oci", first}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"push", "-oci", images, "-oci", charts("two")}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), chart.String()+": the published digest is") {
		t.Errorf("error is %v, want one about %s", err, chart)
	}
	if published, err := remote.Head(operator); err == nil {
		t.Errorf("%s is published with digest %s, want nothing published", operator, published.Digest)
	}
	// If the same chart is published already, push publishes only the images.
	var out bytes.Buffer
	if err := run(t.Context(), []string{"push", "-oci", images, "-oci", first}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	published, err := remote.Head(chart)
	if err != nil {
		t.Fatal(err)
	}
	if want := operator.String() + "@" + digest + "\n" + chart.String() + "@" + published.Digest.String() + "\n"; out.String() != want {
		t.Errorf("push prints %q, want %q", out.String(), want)
	}
	if published, err := remote.Head(operator); err != nil || published.Digest.String() != digest {
		t.Errorf("%s has %v, error %v; want %s", operator, published, err, digest)
	}
}

func TestWrongUseIsReported(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want string
	}{
		"no command":                      {nil, "want build, e2e, rootfs, push or notes"},
		"an unknown command":              {[]string{"bulid"}, `got ["bulid"]`},
		"an argument that is not a flag":  {[]string{"build", "relay"}, `want flags only, got "relay"`},
		"a platform without images":       {[]string{"build", "-platform", "linux/amd64,linux/386", "-out", t.TempDir()}, `for "linux/amd64,linux/386": want`},
		"a folder that is not a checkout": {[]string{"build", "-root", t.TempDir(), "-out", t.TempDir()}, "project's root"},
		"rootfs without a folder":         {[]string{"rootfs", "-image", "relay"}, "-image or -out is missing"},
		"rootfs without an image":         {[]string{"rootfs", "-out", "x"}, "-image or -out is missing"},
		"rootfs of an unknown image":      {[]string{"rootfs", "-image", "relais", "-out", "x"}, `image "relais" for "linux/amd64": want operator or relay`},
		"an unknown image of the suite":   {[]string{"e2e", "-only", "redis", "-out", t.TempDir()}, `want operator or relay, or with e2e localnet, gate, postgres, vault, traefik, keda, keda-adapter, prometheus-server, prometheus-operator or prometheus-reloader`},
		"a tag of another version":        {[]string{"notes", "-tag", "v99.0.0"}, "-tag is \"v99.0.0\", and contract.Version says"},
		"push without a layout":           {[]string{"push"}, "-oci is missing"},
		"push of an empty folder":         {[]string{"push", "-oci", t.TempDir()}, "read the OCI layout"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), tt.args, io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want one with %q", err, tt.want)
			}
		})
	}
}
