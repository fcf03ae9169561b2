package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// example returns an image with three files, as an OCI layout and its descriptor.
func example(t *testing.T, architecture, content string, tag name.Tag) (tree, v1.Descriptor) {
	t.Helper()
	files := tree{
		"usr/bin/app": {Data: []byte(content + architecture), Mode: 0o755}, "etc/passwd": text("root"), "tmp": {Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
	layout, image, err := newImage(files, v1.ConfigFile{OS: "linux", Architecture: architecture, Created: v1.Time{Time: at}, Config: v1.Config{Entrypoint: []string{"/app"}}}, tag)
	if err != nil {
		t.Fatal(err)
	}
	return layout, image
}

func TestALayerHasFoldersBeforeTheirFiles(t *testing.T) {
	t.Parallel()
	files := tree{
		"usr/bin/app": {Mode: 0o755}, "etc/passwd": text("root"), "tmp": {Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
	content, err := pack(files, at)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || !h.ModTime.Equal(at) {
			t.Errorf("%s has owner %d:%d and time %s, want 0:0 and %s", h.Name, h.Uid, h.Gid, h.ModTime, at)
		}
		got = append(got, fmt.Sprintf("%c %04o %s", h.Typeflag, h.Mode, h.Name))
	}
	want := []string{"5 0755 etc/", "0 0644 etc/passwd", "5 1777 tmp/", "5 0755 usr/", "5 0755 usr/bin/", "0 0755 usr/bin/app"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestAnArchiveIsReadByDockerAndByContainerdUnderTheSameName(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ name, docker, containerd string }{
		"another registry":       {"ghcr.io/relaypool/relay:1.2.3", "ghcr.io/relaypool/relay:1.2.3", "ghcr.io/relaypool/relay:1.2.3"},
		"a registry with a port": {"registry.example:5000/relay:1.2.3", "registry.example:5000/relay:1.2.3", "registry.example:5000/relay:1.2.3"},
		"Docker Hub":             {"docker.io/relaypool/localnet:dev", "relaypool/localnet:dev", "docker.io/relaypool/localnet:dev"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			tag, err := name.NewTag(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			content, image := example(t, "amd64", "one", tag)
			packed, err := pack(content, at)
			if err != nil {
				t.Fatal(err)
			}
			// Docker and the package tarball read manifest.json.
			docker, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }, &tag)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Image(docker); err != nil {
				t.Error(err)
			}
			var lists []struct{ RepoTags []string }
			if err := json.Unmarshal(content["manifest.json"].Data, &lists); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tt.docker}, lists[0].RepoTags); diff != "" {
				t.Errorf("Docker's name (-want +got):\n%s", diff)
			}
			// containerd reads index.json.
			folder := t.TempDir()
			unpack(t, bytes.NewReader(packed), folder)
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
				MediaType: types.OCIManifestSchema1, Digest: image.Digest, Size: image.Size,
				Annotations: map[string]string{"io.containerd.image.name": tt.containerd, "org.opencontainers.image.ref.name": tag.TagStr()},
			}}
			if diff := cmp.Diff(want, manifest.Manifests); diff != "" {
				t.Errorf("containerd's index (-want +got):\n%s", diff)
			}
			again, _ := example(t, "amd64", "one", tag)
			if repacked, err := pack(again, at); err != nil || !bytes.Equal(packed, repacked) {
				t.Errorf("two archives of the same image differ, or error %v", err)
			}
		})
	}
}

func TestAnImageHasMozillasUnconstrainedRoots(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel() // so that stage does not compile the program
	files, _, err := (&source{root: filepath.Join("..", "..")}).stage(canceled, released[0], &v1.Platform{OS: "linux", Architecture: "amd64"})
	if err == nil {
		t.Error("stage without a compiled program: got no error")
	}
	certificates := files["etc/ssl/certs/ca-certificates.crt"].Data
	got := map[string]bool{}
	for rest := certificates; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		got[string(block.Bytes)] = true
	}
	constrained := 0
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			constrained++
		}
		if want := root.Constraint == nil; got[string(root.Certificate)] != want {
			t.Errorf("a root certificate (with a constraint: %t) is in the image: %t, want %t", !want, !want, want)
		}
		delete(got, string(root.Certificate))
	}
	if len(got) > 0 {
		t.Errorf("the image has %d certificates that are not Mozilla's, want none", len(got))
	}
	if constrained == 0 {
		t.Error("no root certificate has a constraint any more: delete the code for constraints")
	}
	if !x509.NewCertPool().AppendCertsFromPEM(certificates) {
		t.Error("crypto/x509 finds no certificate in the image's file")
	}
}
