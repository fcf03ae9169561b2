package pack_test

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	inmemory "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"helm.sh/helm/v4/pkg/registry"

	"github.com/relaypool/relaypool/hack/chart/pack"
)

const (
	chartPath  = "../../../charts/relaypool"
	repository = "ghcr.io/relaypool/charts"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// packaged packages a copy of the chart's folder whose files have the modification time
// modified.
func packaged(t *testing.T, modified, at time.Time) (archive, oci string, digest v1.Hash) {
	t.Helper()
	folder, out := filepath.Join(t.TempDir(), "relaypool"), t.TempDir()
	must(t, os.CopyFS(folder, os.DirFS(chartPath)))
	must(t, filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, modified, modified)
	}))
	archive, err := pack.Archive(folder, out, at)
	must(t, err)
	oci = filepath.Join(out, "oci")
	tag, digest, err := pack.Layout(archive, repository, oci, at)
	must(t, err)
	if want := repository + "/relaypool:" + version(archive); tag.String() != want {
		t.Errorf("the chart is named %s, want %s", tag, want)
	}
	return archive, oci, digest
}

// version is the version in an archive's name.
func version(archive string) string {
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(archive), "relaypool-"), ".tgz")
}

// A repeated release makes the same files.
func TestPackagingIsReproducible(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	first, _, digest := packaged(t, time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), at)
	second, _, again := packaged(t, time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC), at.In(time.FixedZone("elsewhere", 3600)))
	if digest != again {
		t.Errorf("the first digest is %s, the second %s; want the same", digest, again)
	}
	a, err := os.ReadFile(first)
	must(t, err)
	b, err := os.ReadFile(second)
	must(t, err)
	if !bytes.Equal(a, b) {
		t.Error("the archives differ")
	}
	// Only the time of the commit matters.
	if _, _, other := packaged(t, at, at.Add(time.Hour)); other == digest {
		t.Error("a chart of another commit has the same digest")
	}
}

// Helm can pull the layout's content under the chart's name.
func TestHelmPullsThePackagedChart(t *testing.T) {
	t.Parallel()
	archive, oci, digest := packaged(t, time.Now(), time.Unix(1_700_000_000, 0))
	path, err := layout.FromPath(oci)
	must(t, err)
	index, err := path.ImageIndex()
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	// The names under which the chart is published.
	var got []string
	for _, m := range manifest.Manifests {
		got = append(got, m.Annotations["io.containerd.image.name"], m.Annotations["org.opencontainers.image.ref.name"])
	}
	if diff := cmp.Diff([]string{repository + "/relaypool:" + version(archive), version(archive)}, got); diff != "" {
		t.Fatalf("names (-want +got):\n%s", diff)
	}
	img, err := index.Image(digest)
	must(t, err)

	server := httptest.NewServer(inmemory.New(inmemory.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://") + "/charts/relaypool:" + version(archive)
	tag, err := name.NewTag(address)
	must(t, err)
	must(t, remote.Write(tag, img))
	helm, err := registry.NewClient(registry.ClientOptPlainHTTP(), registry.ClientOptWriter(io.Discard), registry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "none")))
	must(t, err)
	pulled, err := helm.Pull(address)
	must(t, err)
	content, err := os.ReadFile(archive)
	must(t, err)
	if !bytes.Equal(pulled.Chart.Data, content) || pulled.Manifest.Digest != digest.String() {
		t.Errorf("helm pulls %d bytes with digest %s, want the archive's %d bytes with digest %s", len(pulled.Chart.Data), pulled.Manifest.Digest, len(content), digest)
	}
	if pulled.Chart.Meta.Name != "relaypool" || pulled.Chart.Meta.Version != version(archive) {
		t.Errorf("helm pulls %+v, want relaypool in version %s", pulled.Chart.Meta, version(archive))
	}
}
