package sbom

import (
	"bytes"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdxlib"
)

func example() Image {
	return Image{
		Reference: "ghcr.io/relaypool/relay:1.2.3", Digest: "sha256:" + strings.Repeat("ab", 32), Version: "1.2.3", Revision: "c0ffee",
		Created: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Program: &debug.BuildInfo{
			GoVersion: "go1.26.8", Path: "example.org/app/cmd", Main: debug.Module{Path: "example.org/app", Version: "(devel)"},
			Deps: []*debug.Module{
				{Path: "github.com/BurntSushi/toml", Version: "v1.6.0", Sum: "h1:abc="},
				{Path: "example.org/old", Version: "v1.0.0", Sum: "h1:old=", Replace: &debug.Module{Path: "example.org/new", Version: "v2.0.0+incompatible", Sum: "h1:new="}},
			},
		},
		Data: []*debug.Module{{Path: "example.org/roots", Version: "v0.1.0", Sum: "h1:roots="}},
	}
}

func TestADocumentNamesWhatTheImageHas(t *testing.T) {
	t.Parallel()
	document, err := New(example())
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := Write(&text, document); err != nil {
		t.Fatal(err)
	}
	read, err := spdxjson.Read(bytes.NewReader(text.Bytes()))
	if err != nil {
		t.Fatalf("SPDX' own reader: %v", err)
	}
	if err := spdxlib.ValidateDocument(read); err != nil {
		t.Errorf("SPDX' own check: %v", err)
	}
	var got []string
	for _, p := range read.Packages {
		line := p.PackageName + " " + p.PackageVersion
		for _, r := range p.PackageExternalReferences {
			line += " " + r.Locator
		}
		if source := strings.TrimPrefix(p.PackageSourceInfo, "go.sum "); source != p.PackageSourceInfo {
			line += " " + source + " " + p.PackageDownloadLocation
		}
		got = append(got, line)
	}
	want := []string{
		"ghcr.io/relaypool/relay:1.2.3 1.2.3",
		"example.org/app v1.2.3 pkg:golang/example.org/app@v1.2.3",
		"example.org/new v2.0.0+incompatible pkg:golang/example.org/new@v2.0.0%2Bincompatible h1:new= https://proxy.golang.org/example.org/new/@v/v2.0.0+incompatible.zip",
		"github.com/BurntSushi/toml v1.6.0 pkg:golang/github.com/BurntSushi/toml@v1.6.0 h1:abc= https://proxy.golang.org/github.com/!burnt!sushi/toml/@v/v1.6.0.zip",
		"stdlib 1.26.8 pkg:golang/stdlib@1.26.8",
		"example.org/roots v0.1.0 pkg:golang/example.org/roots@v0.1.0 h1:roots= https://proxy.golang.org/example.org/roots/@v/v0.1.0.zip",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	var relations []string
	for _, r := range read.Relationships {
		relations = append(relations, string(r.RefA.ElementRefID)+" "+r.Relationship+" "+string(r.RefB.ElementRefID))
	}
	wantRelations := []string{
		"DOCUMENT DESCRIBES Image", "Image CONTAINS Program",
		"Program DEPENDS_ON Module-example.org-new-v2.0.0-incompatible", "Program DEPENDS_ON Module-github.com-BurntSushi-toml-v1.6.0",
		"Program DEPENDS_ON Module-stdlib-1.26.8", "Image CONTAINS Module-example.org-roots-v0.1.0",
	}
	if diff := cmp.Diff(wantRelations, relations); diff != "" {
		t.Errorf("relationships (-want +got):\n%s", diff)
	}
	if slices.ContainsFunc(read.Packages[1:], func(p *spdx.Package) bool { return p.FilesAnalyzed }) {
		t.Error("a package claims that its files were looked at")
	}
}

func TestTheSameImageHasTheSameDocument(t *testing.T) {
	t.Parallel()
	var texts [2]bytes.Buffer
	for i := range texts {
		image := example()
		if i == 1 {
			slices.Reverse(image.Program.Deps)
		}
		document, err := New(image)
		if err != nil {
			t.Fatal(err)
		}
		if err := Write(&texts[i], document); err != nil {
			t.Fatal(err)
		}
	}
	if texts[0].String() != texts[1].String() {
		t.Errorf("documents differ:\n%s", cmp.Diff(texts[0].String(), texts[1].String()))
	}
}

func TestADocumentNeedsToKnowItsImage(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*Image){
		"no name":               func(i *Image) { i.Reference = "" },
		"a digest without kind": func(i *Image) { i.Digest = strings.TrimPrefix(i.Digest, "sha256:") },
		"no version":            func(i *Image) { i.Version = "" },
		"no time":               func(i *Image) { i.Created = time.Time{} },
		"no program":            func(i *Image) { i.Program = nil },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			image := example()
			spoil(&image)
			if _, err := New(image); err == nil {
				t.Error("want an error")
			}
		})
	}
}
