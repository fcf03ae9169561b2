package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

var notSPDX = regexp.MustCompile(`[^A-Za-z0-9.-]`) // not allowed in an SPDX identifier

// sbom lists the contents of an image as SPDX 2.3: the program, the modules and the
// standard library in its build information, and certificatesModule.
func (s *source) sbom(image string, digest v1.Hash, program []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	own, known := debug.ReadBuildInfo() // this program contains certificatesModule
	if err != nil || !known {
		return nil, fmt.Errorf("read the build information: %w", err)
	}
	type object = map[string]any
	const none = "NOASSERTION"
	var packages, relations []object
	add := func(from, relation, purpose, license, note string, m *debug.Module, more object) string {
		id := "SPDXRef-" + notSPDX.ReplaceAllString(m.Path+"-"+m.Version, "-")
		relations = append(relations, object{"spdxElementId": from, "relationshipType": relation, "relatedSpdxElement": id})
		packages = append(packages, object{
			"SPDXID": id, "name": m.Path, "versionInfo": m.Version, "primaryPackagePurpose": purpose, "filesAnalyzed": false, "sourceInfo": note,
			"licenseDeclared": license, "licenseConcluded": none, "copyrightText": none, "downloadLocation": none,
			"externalRefs": []object{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")}},
		})
		maps.Copy(packages[len(packages)-1], more)
		return id
	}
	in := add("SPDXRef-DOCUMENT", "DESCRIBES", "CONTAINER", "Apache-2.0", "", &debug.Module{Path: image, Version: s.version}, object{
		"externalRefs": nil, "checksums": []object{{"algorithm": "SHA256", "checksumValue": digest.Hex}},
	})
	// For a commit without a tag, the build information has the version (devel), so the SBOM has
	// the project's version.
	id := add(in, "CONTAINS", "APPLICATION", "Apache-2.0", "built from "+info.Path+" at commit "+s.revision, &debug.Module{Path: info.Main.Path, Version: "v" + s.version}, nil)
	add(id, "DEPENDS_ON", "LIBRARY", none, "", &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}, nil)
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(id, "DEPENDS_ON", "LIBRARY", none, "go.sum "+m.Sum, m, nil)
	}
	data := own.Deps[slices.IndexFunc(own.Deps, func(m *debug.Module) bool { return m.Path == certificatesModule })]
	add(in, "CONTAINS", "LIBRARY", none, "go.sum "+data.Sum, data, nil)
	return json.MarshalIndent(object{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": image,
		"documentNamespace": repository + "/spdx/" + notSPDX.ReplaceAllString(image, "-") + "-" + digest.Hex,
		"creationInfo":      object{"creators": []string{"Organization: relaypool", "Tool: relaypool-images-" + s.version}, "created": s.created.Format(time.RFC3339)},
		"packages":          packages, "relationships": relations,
	}, "", " ")
}
