package rootfs

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

var commitTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// list gives a line for each entry of a tar: type, mode, path, and target.
func list(t *testing.T, content []byte) []string {
	t.Helper()
	var lines []string
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(commitTime) {
			t.Errorf("%s is of %d:%d at %s, want 0:0 at %s", h.Name, h.Uid, h.Gid, h.ModTime, commitTime)
		}
		lines = append(lines, fmt.Sprintf("%c %04o %s%s", h.Typeflag, h.Mode, h.Name, h.Linkname))
	}
}

func write(t *testing.T, tree Tree) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := tree.Tar(&out, commitTime.Add(900*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func example(t *testing.T) Tree {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Tree{
		Program("usr/bin/app", program),
		Text("etc/passwd", "root"),
		Dir("tmp", fs.ModeSticky|0o777),
		{Path: "bin", Mode: fs.ModeSymlink | 0o777, Target: "usr/bin"},
	}
}

func TestALayerHasItsFilesInOrderWithTheirFolders(t *testing.T) {
	t.Parallel()
	want := []string{"2 0777 binusr/bin", "5 0755 etc/", "0 0644 etc/passwd", "5 1777 tmp/", "5 0755 usr/", "5 0755 usr/bin/", "0 0755 usr/bin/app"}
	if diff := cmp.Diff(want, list(t, write(t, example(t)))); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestTheSameFilesGiveTheSameBytes(t *testing.T) {
	t.Parallel()
	tree := example(t)
	first := write(t, tree)
	slices.Reverse(tree)
	later := commitTime.Add(time.Hour)
	if err := os.Chtimes(tree[3].Source, later, later); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, write(t, tree)) {
		t.Error("another order and another time of a source make another layer")
	}
}

func TestWhatIsNoFileOfAnImageIsRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		tree Tree
		want string
	}{
		"a path with a slash at its start":    {Tree{Text("/etc/passwd", "")}, "clean path"},
		"a path that leaves the image":        {Tree{Text("../passwd", "")}, "clean path"},
		"the image's root":                    {Tree{Dir(".", 0o755)}, "clean path"},
		"one file twice":                      {Tree{Text("a", ""), Text("a", "b")}, "twice"},
		"a source that is not there":          {Tree{Program("a", "/does/not/exist")}, "no such file"},
		"a source that is a folder of this":   {Tree{Program("a", t.TempDir())}, "no regular file"},
		"a file where another needs a folder": {Tree{Text("a", ""), Text("a/b", "")}, "not a folder"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.tree.Tar(io.Discard, commitTime)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestAFolderHasWhatALayerHas(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "root")
	tree := example(t)
	if err := tree.WriteTo(folder); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || file == folder {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(file, folder+"/")
		mode := int64(info.Mode().Perm())
		if info.Mode()&fs.ModeSticky != 0 {
			mode |= 0o1000
		}
		switch info.Mode().Type() {
		case fs.ModeDir:
			got = append(got, fmt.Sprintf("5 %04o %s/", mode, name))
		case fs.ModeSymlink:
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			got = append(got, fmt.Sprintf("2 %04o %s%s", mode, name, target))
		default:
			got = append(got, fmt.Sprintf("0 %04o %s", mode, name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(list(t, write(t, tree)), got); diff != "" {
		t.Errorf("files (-layer +folder):\n%s", diff)
	}
	if err := tree.WriteTo(folder); !errors.Is(err, fs.ErrExist) {
		t.Errorf("files are written over others: %v, want that they exist", err)
	}
}

func TestTheBaseTrustsWhomMozillaTrustsWithoutConditions(t *testing.T) {
	t.Parallel()
	base, err := Base()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(base, func(f File) bool { return f.Path == CertificatesPath })
	if i < 0 {
		t.Fatalf("no %s", CertificatesPath)
	}
	got := map[string]bool{}
	for rest := base[i].Content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Error(err)
		}
		got[string(block.Bytes)] = true
	}
	conditional := 0
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			conditional++
		}
		if want := root.Constraint == nil; got[string(root.Certificate)] != want {
			t.Errorf("a root certificate with conditions %t is trusted: %t", !want, !want)
		}
		delete(got, string(root.Certificate))
	}
	if len(got) > 0 {
		t.Errorf("%d certificates are not Mozilla's", len(got))
	}
	if conditional == 0 {
		t.Error("no root has conditions any more: leave out what says so")
	}
	if !x509.NewCertPool().AppendCertsFromPEM(base[i].Content) {
		t.Error("Go's own reader finds no certificate")
	}
}
