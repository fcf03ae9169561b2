package archive

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/relaypool/relaypool/hack/images/internal/image"
	"github.com/relaypool/relaypool/hack/images/internal/program"
	"github.com/relaypool/relaypool/hack/images/internal/rootfs"
)

func example(t *testing.T, architecture string) v1.Image {
	t.Helper()
	files := rootfs.Tree{rootfs.Text("etc/passwd", architecture)}
	img, err := image.New(image.Spec{
		Platform: program.Platform{OS: "linux", Architecture: architecture}, Created: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC),
		Entrypoint: []string{"/app"}, Layers: []image.Layer{{Files: files, History: "one"}, {Files: files, History: "the same again"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func digest(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	got, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return got.String()
}

// entries gives an archive's files, each of which must be there once.
func entries(t *testing.T, file string) map[string][]byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := all[h.Name]; twice {
			t.Errorf("%s is in the archive twice", h.Name)
		}
		if all[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnArchiveIsReadByDockerAndByContainerdUnderTheSameName(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ name, docker, containerd string }{
		"a registry of its own": {"ghcr.io/relaypool/relay:1.2.3", "ghcr.io/relaypool/relay:1.2.3", "ghcr.io/relaypool/relay:1.2.3"},
		"a port":                {"registry.example:5000/relay:1.2.3", "registry.example:5000/relay:1.2.3", "registry.example:5000/relay:1.2.3"},
		"no registry":           {"relaypool/localnet:dev", "relaypool/localnet:dev", "docker.io/relaypool/localnet:dev"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			img := example(t, "amd64")
			tag, err := name.NewTag(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "image.tar")
			if err := Write(file, tag, img); err != nil {
				t.Fatal(err)
			}
			// Docker reads manifest.json, and so does this reader.
			docker, err := tarball.ImageFromPath(file, &tag)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Image(docker); err != nil {
				t.Error(err)
			}
			files := entries(t, file)
			var manifests []dockerManifest
			if err := json.Unmarshal(files["manifest.json"], &manifests); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tt.docker}, manifests[0].RepoTags); diff != "" {
				t.Errorf("Docker's name (-want +got):\n%s", diff)
			}
			// containerd reads index.json.
			folder := t.TempDir()
			for path, content := range files {
				path = filepath.Join(folder, path)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			index, err := layout.ImageIndexFromPath(folder)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Index(index); err != nil {
				t.Error(err)
			}
			manifest, err := index.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			want := []v1.Descriptor{{
				MediaType: "application/vnd.oci.image.manifest.v1+json", Digest: manifest.Manifests[0].Digest, Size: manifest.Manifests[0].Size,
				Annotations: map[string]string{"io.containerd.image.name": tt.containerd, "org.opencontainers.image.ref.name": tag.TagStr()},
			}}
			if diff := cmp.Diff(want, manifest.Manifests); diff != "" {
				t.Errorf("containerd's index (-want +got):\n%s", diff)
			}
			if got := manifest.Manifests[0].Digest.String(); got != digest(t, img) {
				t.Errorf("the archive's digest is %s, the image's %s", got, digest(t, img))
			}
		})
	}
}

func TestTheSameImageGivesTheSameArchive(t *testing.T) {
	t.Parallel()
	var contents [2][]byte
	for i := range contents {
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := Write(file, name.MustParseReference("example.org/app:1").(name.Tag), example(t, "amd64")); err != nil {
			t.Fatal(err)
		}
		var err error
		if contents[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(contents[0], contents[1]) {
		t.Error("two archives of the same image differ")
	}
}

func TestAnArchiveThatCannotBeWrittenLeavesNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := Write(file, name.MustParseReference("example.org/app:1").(name.Tag), broken{example(t, "amd64")}); !errors.Is(err, errBroken) {
		t.Errorf("error is %v, want the image's", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half an archive is left: %v", err)
	}
}

var errBroken = errors.New("broken")

type broken struct{ v1.Image }

func (broken) Layers() ([]v1.Layer, error) { return nil, errBroken }

func TestALayoutHasEverythingUnderItsName(t *testing.T) {
	t.Parallel()
	index, err := Index(example(t, "amd64"), example(t, "arm64"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Tagged{
		{Tag: name.MustParseReference("ghcr.io/relaypool/operator:1.2.3").(name.Tag), Index: index},
		{Tag: name.MustParseReference("ghcr.io/relaypool/relay:1.2.3").(name.Tag), Index: index},
		{Tag: name.MustParseReference("ghcr.io/relaypool/charts/relaypool:1.2.3").(name.Tag), Image: example(t, "amd64")},
	}
	folder := filepath.Join(t.TempDir(), "oci")
	for range 2 { // a second time replaces the first
		if err := WriteLayout(folder, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadLayout(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d names, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].Tag != want[i].Tag || digest(t, got[i].Content()) != digest(t, want[i].Content()) {
			t.Errorf("name %d is %s %s, want %s %s", i, got[i].Tag, digest(t, got[i].Content()), want[i].Tag, digest(t, want[i].Content()))
		}
		if want[i].Index == nil {
			if err := validate.Image(got[i].Image); err != nil {
				t.Error(err)
			}
			continue
		}
		if err := validate.Index(got[i].Index); err != nil {
			t.Error(err)
		}
		manifest, err := got[i].Index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		var platforms []string
		for _, m := range manifest.Manifests {
			platforms = append(platforms, m.Platform.String())
		}
		if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
			t.Errorf("platforms (-want +got):\n%s", diff)
		}
	}
}
