package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const certificatesModule = "golang.org/x/crypto/x509roots/fallback" // the module of the images' CA certificates

var (
	versionLine = regexp.MustCompile(`(?m)^const Version = "(.+)"$`)
	licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|unlicense|notice|patents)([.-][a-z0-9.-]*)?$`)
	codeName    = regexp.MustCompile(`(?i)\.(go|s|c|h|json|ya?ml)$`)
	notSPDX     = regexp.MustCompile(`[^A-Za-z0-9.-]`) // not allowed in an SPDX identifier
	// withoutLicense are modules without a licence file.
	withoutLicense = []string{"github.com/gagliardetto/treeout"}
)

// source is the checkout that images are built from. Its revision is the commit, with
// "+modified" if files differ from it, or "unknown" outside of version control. The time
// created is SOURCE_DATE_EPOCH, or by default the commit's time.
type source struct {
	root, version, revision string
	created                 time.Time
}

// readSource asks git for the commit, because the go command does not find it in a
// `git worktree`.
func readSource(ctx context.Context, root string) (*source, error) {
	version, err := match(filepath.Join(root, "relay", "contract", "contract.go"), versionLine)
	folder, failed := filepath.Abs(root)
	if err := errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("read the version: %w; is %s the project's root?", err, root)
	}
	// An archive of the source may be unpacked inside another repository. Git must not report
	// that repository's commit.
	ceiling := []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(folder)}
	commit, failed := output(ctx, root, ceiling, "git", "log", "-1", "--format=%H %ct")
	changes, err := output(ctx, root, ceiling, "git", "status", "--porcelain")
	revision, seconds, _ := strings.Cut(commit, " ")
	if changes != "" {
		revision += "+modified"
	}
	seconds = cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), seconds)
	if seconds == "" {
		return nil, fmt.Errorf("the source has no commit to take the images' time from: build in a clone with git, or set SOURCE_DATE_EPOCH to seconds since 1970: %w", errors.Join(failed, err))
	}
	since, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || since < 0 {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH is %q, want seconds since 1970, such as the output of `git log -1 --format=%%ct`", seconds)
	}
	return &source{root: root, version: version, revision: cmp.Or(revision, "unknown"), created: time.Unix(since, 0).UTC()}, nil
}

// match returns the text of the pattern's group at its first match in a file.
func match(file string, pattern *regexp.Regexp) (string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // a file of the checkout
	if found := pattern.FindSubmatch(text); found != nil {
		return string(found[1]), nil
	}
	return "", errors.Join(err, fmt.Errorf("%s has no line %s", file, pattern))
}

func output(ctx context.Context, folder string, environment []string, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), environment...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("run %s %s: %w: %s", program, args[0], err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// addLicenses adds the licences of Go, of certificatesModule and of all modules that a
// program is linked with. It searches a module's package folders and the folders above
// them, because a module may contain copies of other modules.
func (s *source) addLicenses(ctx context.Context, files tree, p product, platform *v1.Platform) error {
	format := `-f={{if .Standard}}std@` + runtime.Version() + `	{{context.GOROOT}}	{{.Dir}}{{else}}{{with .Module}}{{if .Version}}{{.Path}}@{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}	{{.Dir}}	{{$.Dir}}{{end}}{{end}}{{end}}`
	for module, linked := range map[string]string{s.root: p.pkg, filepath.Join(s.root, "hack", "images"): certificatesModule + "/bundle"} {
		lines, err := goCommand(ctx, module, platform, "list", "-deps", "-mod=readonly", "-tags=", format, linked)
		for line := range strings.Lines(lines) {
			m := strings.Split(strings.TrimSpace(line), "\t") // the module, its folder, the package's folder
			found := len(m) < 3 || slices.ContainsFunc(withoutLicense, func(path string) bool { return strings.HasPrefix(m[0], path+"@") })
			for folder := m[len(m)-1]; len(m) == 3 && strings.HasPrefix(folder, m[1]); folder = filepath.Dir(folder) {
				siblings, _ := filepath.Glob(folder + "/*")
				for _, file := range siblings {
					if base := filepath.Base(file); !licenseName.MatchString(base) || codeName.MatchString(base) {
						continue
					}
					if content, err := os.ReadFile(file); err == nil { // it may be a folder
						files["licenses/THIRD-PARTY/"+m[0]+file[len(m[1]):]], found = text(content), true
					}
				}
			}
			if !found {
				err = errors.Join(err, fmt.Errorf("%s has no licence file: find out its licence, and add the module to withoutLicense in hack/images", m[0]))
			}
		}
		if err != nil {
			return fmt.Errorf("collect licences: %w", err)
		}
	}
	return nil
}

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
