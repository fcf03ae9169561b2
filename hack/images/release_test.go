package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// built is a release that was built from the checkout root into the folder out.
type built struct{ root, out, commit, version string }

// TestReleaseBuild builds the images as a release does, from two clones of one commit in folders
// with names of different lengths.
func TestReleaseBuild(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	first := built{root: t.TempDir(), out: t.TempDir()}
	first.commit = checkout(t, first.root)
	second := built{root: filepath.Join(t.TempDir(), "a", "longer", "path"), out: t.TempDir(), commit: first.commit}
	git(t, first.root, "clone", "-q", first.root, second.root)
	var err error
	if first.version, err = match(filepath.Join(first.root, "relay", "contract", "contract.go"), versionLine); err != nil {
		t.Fatal(err)
	}
	for _, b := range []built{first, second} {
		args := []string{"build", "-root", b.root, "-out", b.out, "-platform", "linux/" + runtime.GOARCH, "-oci", filepath.Join(b.out, "oci")}
		if err := run(t.Context(), args, io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("is the same from two clones", func(t *testing.T) { sameFiles(t, first.out, second.out) })
	for _, name := range []string{"operator", "relay"} {
		t.Run(name, func(t *testing.T) { first.check(t, name) })
	}
	t.Run("digests", first.digests)
	// The Dockerfile copies the files of the folder that rootfs writes.
	t.Run("has the same files as a rootfs folder", func(t *testing.T) {
		folder, want := filepath.Join(t.TempDir(), "rootfs"), t.TempDir()
		args := []string{"rootfs", "-root", second.root, "-image", "relay", "-platform", "linux/" + runtime.GOARCH, "-out", folder}
		if err := run(t.Context(), args, io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
		content := mutate.Extract(load(t, filepath.Join(first.out, "relay.tar")))
		unpack(t, content, want)
		if err := content.Close(); err != nil {
			t.Fatal(err)
		}
		sameFiles(t, want, folder)
	})
}

// sameFiles requires the same files with the same modes and content in both folders.
func sameFiles(t *testing.T, a, b string) {
	var names [2][]string
	for i, folder := range []string{a, b} {
		err := filepath.WalkDir(folder, func(file string, entry os.DirEntry, err error) error {
			if err != nil || file == folder {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			names[i] = append(names[i], info.Mode().String()+" "+strings.TrimPrefix(file, folder))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(names[0], names[1]); diff != "" {
		t.Errorf("files (-first +second):\n%s", diff)
	}
	if len(names[0]) < 5 {
		t.Errorf("the folder has %d files, want at least 5", len(names[0]))
	}
	for _, line := range names[0] {
		mode, name, _ := strings.Cut(line, " ")
		if strings.HasPrefix(mode, "d") {
			continue
		}
		first, err := os.ReadFile(a + name)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := os.ReadFile(b + name); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s differs between two clones, or error %v", name, err)
		}
	}
}

func (b built) check(t *testing.T, name string) {
	img := load(t, filepath.Join(b.out, name+".tar"))
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	t.Run("configuration", func(t *testing.T) { b.configuration(t, name, img) })
	file := filepath.Join(t.TempDir(), name)
	t.Run("files", func(t *testing.T) { extract(t, img, name, file) })
	t.Run("program", func(t *testing.T) { b.program(t, name, file) })
	t.Run("licences", func(t *testing.T) { b.licenses(t, file, img) })
	t.Run("SBOM", func(t *testing.T) { b.sbom(t, name, file, img) })
}

func (b built) configuration(t *testing.T, name string, img v1.Image) {
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	labels := config.Config.Labels
	for _, text := range []string{"title", "description"} { // free texts, whose values are not checked
		if labels["org.opencontainers.image."+text] == "" {
			t.Errorf("the image has no label for its %s", text)
		}
	}
	want := v1.Config{
		User: "65532:65532", Entrypoint: []string{"/" + name}, WorkingDir: "/",
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":         labels["org.opencontainers.image.title"],
			"org.opencontainers.image.description":   labels["org.opencontainers.image.description"],
			"org.opencontainers.image.version":       b.version,
			"org.opencontainers.image.revision":      b.commit,
			"org.opencontainers.image.created":       commitTime,
			"org.opencontainers.image.source":        "https://github.com/relaypool/relaypool",
			"org.opencontainers.image.documentation": "https://github.com/relaypool/relaypool/blob/main/docs/guides/images.md",
			"org.opencontainers.image.licenses":      "Apache-2.0",
			"org.opencontainers.image.vendor":        "relaypool",
		},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if config.OS != "linux" || config.Architecture != runtime.GOARCH || config.Created.Format(time.RFC3339) != commitTime {
		t.Errorf("the image is for %s/%s and created at %s, want linux/%s and the commit's time", config.OS, config.Architecture, config.Created, runtime.GOARCH)
	}
}

// extract requires exactly the files that an image should have, without a shell, and writes the
// program to a file.
func extract(t *testing.T, img v1.Image, name, file string) {
	content := mutate.Extract(img)
	defer func() {
		if err := content.Close(); err != nil {
			t.Error(err)
		}
	}()
	var got []string
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.UTC().Format(time.RFC3339) != commitTime {
			t.Errorf("%s has owner %d:%d and time %s, want root and the commit's time", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		line := fmt.Sprintf("%04o %s", h.Mode, strings.TrimSuffix(h.Name, "/"))
		if strings.HasPrefix(h.Name, thirdParty+"/") { // licenses checks the content of these
			if want := map[byte]int64{tar.TypeDir: 0o755, tar.TypeReg: 0o644}[h.Typeflag]; h.Mode != want {
				t.Errorf("%s: want mode %04o", line, want)
			}
			continue
		}
		got = append(got, line)
		if h.Name != name {
			continue
		}
		if err := writeFile(file, 0o755, r); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(got)
	want := []string{
		"0644 etc/group", "0644 etc/passwd", "0644 etc/ssl/certs/ca-certificates.crt",
		"0644 licenses/LICENSE", "0755 licenses/THIRD-PARTY",
		"0755 " + name, "0755 etc", "0755 etc/ssl", "0755 etc/ssl/certs", "0755 licenses", "1777 tmp",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// program requires that the image's program runs without any other file and reports the
// release's version.
func (b built) program(t *testing.T, name, file string) {
	cmd := exec.Command(file, "version", "--json")
	cmd.Env = []string{}
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Version, Build string }
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != b.version || got.Build != b.commit {
		t.Errorf("%s reports %+v, want version %s and build %s", name, got, b.version, b.commit)
	}
	if out, err := exec.Command("ldd", file).CombinedOutput(); err == nil || !strings.Contains(string(out), "not a dynamic executable") {
		t.Errorf("the program is not static: %s", out)
	}
}

const thirdParty = "licenses/THIRD-PARTY"

// licenses requires that the image has the unchanged licence of every module in the program's
// build information.
func (b built) licenses(t *testing.T, file string, img v1.Image) {
	folder := t.TempDir()
	content := mutate.Extract(img)
	unpack(t, content, folder)
	if err := content.Close(); err != nil {
		t.Fatal(err)
	}
	checkSame := func(name, source string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
			return
		}
		want, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("/%s differs from %s", name, source)
		}
	}
	checkSame("licenses/LICENSE", filepath.Join(b.root, "LICENSE"))
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := b.licenseFiles(t, info)
	for module, file := range all {
		path, _, _ := strings.Cut(module, "@")
		switch {
		case file != "":
			checkSame(filepath.Join(thirdParty, module, filepath.Base(file)), file)
		case !slices.Contains(withoutLicense, path):
			t.Errorf("%s has no licence file with a name that this test knows", module)
		}
	}
	if len(all) < 40 {
		t.Errorf("%d modules are linked, want at least 40", len(all))
	}
}

// licenseFiles maps a module's folder in the image to its licence file, which is empty if the
// module has none. It includes Go, the modules that the program is linked with, and the module
// of the CA certificates.
func (b built) licenseFiles(t *testing.T, info *debug.BuildInfo) map[string]string {
	goOutput := func(folder string, args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = filepath.Join(b.root, folder)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %s: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	folders := map[string]string{"std@" + runtime.Version(): goOutput(".", "env", "GOROOT")}
	for _, m := range info.Deps {
		folders[m.Path+"@"+m.Version] = goOutput(".", "list", "-m", "-f", "{{.Dir}}", m.Path)
	}
	folders[certificatesModule+"@"+goOutput("hack/images", "list", "-m", "-f", "{{.Version}}", certificatesModule)] = goOutput("hack/images", "list", "-m", "-f", "{{.Dir}}", certificatesModule)
	all := map[string]string{}
	for module, folder := range folders {
		all[module] = ""
		for _, name := range []string{"LICENSE", "LICENSE.txt", "LICENSE.md", "COPYING"} {
			if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
				all[module] = filepath.Join(folder, name)
			}
		}
	}
	return all
}

// sbom compares the SBOM with the program's build information.
func (b built) sbom(t *testing.T, name, file string, img v1.Image) {
	text, err := os.ReadFile(filepath.Join(b.out, name+".spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	url := func(path, version string) string {
		return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	}
	want := map[string]string{ // from a package's URL to its description
		url("stdlib", strings.TrimPrefix(runtime.Version(), "go")): "",
		url(info.Main.Path, "v"+b.version):                         "built from " + info.Path + " at commit " + b.commit,
	}
	own, _ := debug.ReadBuildInfo()
	for _, m := range append(info.Deps, own.Deps[slices.IndexFunc(own.Deps, func(m *debug.Module) bool { return m.Path == certificatesModule })]) {
		if m.Replace != nil {
			m = m.Replace
		}
		want[url(m.Path, m.Version)] = "go.sum " + m.Sum
	}
	got := map[string]string{}
	for _, p := range document.Packages {
		for _, r := range p.PackageExternalReferences {
			got[r.Locator] = p.PackageSourceInfo
		}
		if len(p.PackageChecksums) > 0 && p.PackageChecksums[0].Value != digest.Hex {
			t.Errorf("the SBOM is of the image %s, want %s", p.PackageChecksums[0].Value, digest.Hex)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	if len(want) < 20 {
		t.Errorf("the build information names %d modules, want at least 20", len(want))
	}
}

// digests compares digests.txt with the archives and the OCI layout.
func (b built) digests(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(b.out, "digests.txt"))
	if err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(b.out, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	indexes, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for i, name := range []string{"operator", "relay"} {
		img := load(t, filepath.Join(b.out, name+".tar"))
		imageDigest, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		found := indexes.Manifests[i]
		full := "ghcr.io/relaypool/" + name + ":" + b.version
		want += fmt.Sprintf("%s  %s  linux/%s\n%s  %s  index\n", imageDigest, full, runtime.GOARCH, found.Digest, full)
		if got := found.Annotations[containerdName]; got != full || !found.MediaType.IsIndex() || found.ArtifactType != "" {
			t.Errorf("the layout has %+v, want an index named %s", found, full)
		}
	}
	if diff := cmp.Diff(want, string(content)); diff != "" {
		t.Errorf("digests.txt (-want +got):\n%s", diff)
	}
}
