package product

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/hack/images/internal/notices"
	"github.com/relaypool/relaypool/hack/images/internal/program"
)

// A release builds for both platforms, of which each may be linked from modules that
// the other is not.
func TestEveryModuleOfEveryPlatformHasItsLicence(t *testing.T) {
	t.Parallel()
	checkout := Checkout{Root: filepath.Join("..", "..", "..", "..")}
	for _, p := range All() {
		for _, architecture := range []string{"amd64", "arm64"} {
			t.Run(p.Name+" for "+architecture, func(t *testing.T) {
				t.Parallel()
				options := program.Options{Module: checkout.Root, Package: p.Package, Platform: program.Platform{OS: "linux", Architecture: architecture}}
				files, err := checkout.licenses(t.Context(), p, options)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					if len(f.Content) < 10_000 {
						t.Errorf("%s has %d bytes", f.Path, len(f.Content))
					}
					if f.Path == NoticesPath && !strings.HasPrefix(string(f.Content), "/"+p.Name+" is linked from") {
						t.Errorf("the page begins with %.60q", f.Content)
					}
				}
			})
		}
	}
}

// A module that has got a licence, or is gone, is no exception any more.
func TestExceptionsAreNeeded(t *testing.T) {
	t.Parallel()
	needed := map[string]bool{}
	for _, p := range All() {
		linked, _, err := program.Folders(t.Context(), program.Options{
			Module: filepath.Join("..", "..", "..", ".."), Package: p.Package, Platform: program.Platform{OS: "linux", Architecture: "amd64"},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range linked {
			if !slices.Contains(withoutLicense(), m.Path) {
				continue
			}
			texts, err := notices.Of(m)
			if err != nil {
				t.Fatal(err)
			}
			needed[m.Path] = len(texts.Texts) == 0
		}
	}
	for _, path := range withoutLicense() {
		if !needed[path] {
			t.Errorf("%s has a licence, or is not linked: take it out of withoutLicense", path)
		}
	}
}
