package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const certificatesModule = "golang.org/x/crypto/x509roots/fallback" // the module of the images' CA certificates

var (
	licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|unlicense|notice|patents)([.-][a-z0-9.-]*)?$`)
	codeName    = regexp.MustCompile(`(?i)\.(go|s|c|h|json|ya?ml)$`)
	// withoutLicense are modules without a licence file.
	withoutLicense = []string{"github.com/gagliardetto/treeout"}
)

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
