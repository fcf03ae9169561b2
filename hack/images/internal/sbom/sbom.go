// Package sbom lists what an image consists of as an SPDX 2.3 document: the
// program, the modules that its build information names, Go's standard library and
// the authorities of TLS.
package sbom

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const (
	documentID  = "DOCUMENT"
	imageID     = "Image"
	programID   = "Program"
	namespace   = "https://github.com/relaypool/relaypool/spdx/"
	license     = "Apache-2.0"
	noAssertion = "NOASSERTION"
)

// Image is what a document describes. All fields are required.
type Image struct {
	// Reference is the image's name with its tag, Digest that of its manifest as
	// sha256:hex.
	Reference, Digest string
	// Version is the release's, Revision the commit's.
	Version, Revision string
	Created           time.Time
	// Program is what the Go toolchain says of the program in the image.
	Program *debug.BuildInfo
	// Data are modules whose files are in the image as they are: the authorities.
	Data []*debug.Module
}

// New makes the document. It depends on nothing else, so that the same image has
// the same document.
func New(i Image) (*v2_3.Document, error) {
	hex, found := strings.CutPrefix(i.Digest, "sha256:")
	if !found || i.Reference == "" || i.Version == "" || i.Created.IsZero() || i.Program == nil {
		return nil, errors.New("make an SBOM: reference, digest as sha256:hex, version, time and build information of the image are required")
	}
	d := &document{v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: documentID,
		DocumentName: i.Reference, DocumentNamespace: namespace + strings.NewReplacer("/", "-", ":", "-").Replace(i.Reference) + "-" + hex,
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Organization", Creator: "relaypool"}, {CreatorType: "Tool", Creator: "relaypool-images-" + i.Version}},
			Created:  i.Created.UTC().Format(time.RFC3339),
		},
	}}
	d.add(imageID, &v2_3.Package{
		PackageName: i.Reference, PackageVersion: i.Version, PrimaryPackagePurpose: "CONTAINER", PackageLicenseDeclared: license,
		PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: hex}},
	})
	d.relate(documentID, common.TypeRelationshipDescribe, imageID)
	// The toolchain knows the program's version where the commit has a tag, and says
	// (devel) elsewhere; this is the one that the program itself says.
	program := goPackage(&debug.Module{Path: i.Program.Main.Path, Version: "v" + i.Version})
	program.PrimaryPackagePurpose, program.PackageLicenseDeclared = "APPLICATION", license
	program.PackageSourceInfo = "built from " + i.Program.Path + " at commit " + i.Revision
	d.add(programID, program)
	d.relate(imageID, common.TypeRelationshipContains, programID)

	modules := []*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(i.Program.GoVersion, "go")}}
	for _, m := range i.Program.Deps {
		modules = append(modules, effective(m))
	}
	for _, m := range sorted(modules) {
		d.add(moduleID(m), goPackage(m))
		d.relate(programID, common.TypeRelationshipDependsOn, moduleID(m))
	}
	for _, m := range sorted(i.Data) {
		if !slices.ContainsFunc(modules, func(o *debug.Module) bool { return moduleID(o) == moduleID(m) }) {
			d.add(moduleID(m), goPackage(m))
		}
		d.relate(imageID, common.TypeRelationshipContains, moduleID(m))
	}
	return &d.Document, nil
}

// Write writes the document as indented JSON.
func Write(w io.Writer, d *v2_3.Document) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	if err := out.Encode(d); err != nil {
		return fmt.Errorf("write the SBOM: %w", err)
	}
	return nil
}

type document struct{ v2_3.Document }

func (d *document) add(id common.ElementID, p *v2_3.Package) {
	p.PackageSPDXIdentifier = id
	p.PackageDownloadLocation = cmp.Or(p.PackageDownloadLocation, noAssertion)
	p.PackageLicenseConcluded, p.PackageCopyrightText = noAssertion, noAssertion
	p.PackageLicenseDeclared = cmp.Or(p.PackageLicenseDeclared, noAssertion)
	p.IsFilesAnalyzedTagPresent = true // and false: a program says of its modules, not of their files
	d.Packages = append(d.Packages, p)
}

func (d *document) relate(from common.ElementID, how string, to common.ElementID) {
	d.Relationships = append(d.Relationships, &v2_3.Relationship{
		RefA: common.DocElementID{ElementRefID: from}, Relationship: how, RefB: common.DocElementID{ElementRefID: to},
	})
}

// effective is the module that was built: another one where go.mod replaces it.
func effective(m *debug.Module) *debug.Module {
	if m.Replace != nil {
		return m.Replace
	}
	return m
}

func sorted(modules []*debug.Module) []*debug.Module {
	return slices.SortedFunc(slices.Values(modules), func(a, b *debug.Module) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Version, b.Version))
	})
}

// goPackage tells of a module what vulnerability scanners look for, its package
// URL, and its checksum as go.sum has it, which is a hash over the names and hashes
// of its files and so none of SPDX' own kinds.
func goPackage(m *debug.Module) *v2_3.Package {
	p := &v2_3.Package{
		PackageName: m.Path, PackageVersion: m.Version, PrimaryPackagePurpose: "LIBRARY",
		PackageExternalReferences: []*v2_3.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: PackageURL(m),
		}},
	}
	if m.Sum != "" {
		p.PackageSourceInfo = "go.sum " + m.Sum
		p.PackageDownloadLocation = "https://proxy.golang.org/" + escape(m.Path) + "/@v/" + escape(m.Version) + ".zip"
	}
	return p
}

// PackageURL names a module as scanners do.
func PackageURL(m *debug.Module) string {
	return "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
}

var upper = regexp.MustCompile(`[A-Z]`)

// escape writes a path or version as the module proxy's addresses do, which tell
// no capital letters from small ones.
func escape(text string) string {
	return upper.ReplaceAllStringFunc(text, func(letter string) string { return "!" + strings.ToLower(letter) })
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9.-]`)

func moduleID(m *debug.Module) common.ElementID {
	return common.ElementID("Module-" + unfit.ReplaceAllString(m.Path+"-"+m.Version, "-"))
}
