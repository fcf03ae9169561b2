package release_test

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/hack/e2e/release"
)

const reference = "ghcr.io/relaypool/relay:0.1.0"

// archive writes a tar of name and content pairs.
func archive(t *testing.T, path string, entries ...string) string {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(file)
	for pair := range slices.Chunk(entries, 2) {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: pair[0], Size: int64(len(pair[1])), Mode: 0o644}))
		_, failed := w.Write([]byte(pair[1]))
		err = errors.Join(err, failed)
	}
	if err := errors.Join(err, w.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func entries(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	out := make(map[string]string)
	for r := tar.NewReader(file); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = string(content)
	}
}

const oneImage = `[{"Config":"sha256:abc","RepoTags":["` + reference + `"],"Layers":["layer.tar.gz"]}]`

func TestARetaggedArchiveDiffersInItsTagAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	from := archive(t, filepath.Join(folder, "relay.tar"), "oci-layout", "{}", "index.json", "{}", "sha256:abc", "{}", "layer.tar.gz", "content", "manifest.json", oneImage)
	if tag, err := release.Tag(from); err != nil || tag != reference {
		t.Fatalf("tag %q, error %v", tag, err)
	}
	to := filepath.Join(folder, "next.tar")
	if err := release.Retag(from, to, reference+"-next"); err != nil {
		t.Fatal(err)
	}
	if tag, err := release.Tag(to); err != nil || tag != reference+"-next" {
		t.Errorf("tag %q, error %v", tag, err)
	}
	was, is := entries(t, from), entries(t, to)
	if len(is) != len(was)-2 {
		t.Errorf("%d entries of %d are left, want all but the two of the other form", len(is), len(was))
	}
	for _, name := range []string{"sha256:abc", "layer.tar.gz"} {
		if was[name] != is[name] {
			t.Errorf("%s is %q, want %q", name, is[name], was[name])
		}
	}
	if got := release.TagOf(reference + "-next"); got != "0.1.0-next" {
		t.Errorf("tag of the reference is %q", got)
	}
}

func TestWhatIsNoImageArchiveIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		entries []string
		want    string
	}{
		"a tar without a manifest": {[]string{"a", "b"}, "has no manifest.json"},
		"a manifest of no image":   {[]string{"manifest.json", "[]"}, "holds 0 images"},
		"a manifest that is none":  {[]string{"manifest.json", "x"}, "read manifest.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := archive(t, filepath.Join(t.TempDir(), "image.tar"), tc.entries...)
			if _, err := release.Tag(path); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestEveryImageIsLoadedByTheUsersCommand(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "e2e"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"operator", "relay", "e2e/postgres", "e2e/localnet", "e2e/gate"} {
		archive(t, filepath.Join(folder, name+".tar"), "manifest.json", strings.Replace(oneImage, "relay:", filepath.Base(name)+":", 1))
	}
	list := filepath.Join(folder, "loaded")
	loader := release.Loader{Command: "echo >>'" + list + "'", Folder: folder}
	images, err := loader.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if images.Gate != "ghcr.io/relaypool/gate:0.1.0" || images.NextRelay != reference+"-next" {
		t.Errorf("images %+v", images)
	}
	text, err := os.ReadFile(list)
	if err != nil || strings.Count(string(text), ".tar\n") != 6 || !strings.Contains(string(text), "relay-next.tar") {
		t.Errorf("loaded %q, error %v; want six archives", text, err)
	}
	loader.Command = "echo no such cluster; false"
	if _, err := loader.Load(context.WithoutCancel(t.Context())); err == nil || !strings.Contains(err.Error(), "no such cluster") {
		t.Errorf("error %v, want what the command said", err)
	}
}
