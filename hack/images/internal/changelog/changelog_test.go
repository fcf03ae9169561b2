package changelog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const text = `# Changelog

Form.

## [Unreleased]

### Added

- Something new.

## [1.2.3] - 2026-03-04

### Fixed

- A fault: see [the issue](https://example.org/1).

## [1.2.2] - 2026-03-01

## [1.2.0] - 2026-02-01

- The first.

[Unreleased]: https://example.org/compare/v1.2.3...HEAD
[1.2.0]: https://example.org/v1.2.0
`

func TestASectionIsWhatStandsBelowItsHeading(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ version, want, fails string }{
		"between others":                {version: "1.2.3", want: "### Fixed\n\n- A fault: see [the issue](https://example.org/1).\n"},
		"the last one, above the links": {version: "1.2.0", want: "- The first.\n"},
		"one that says nothing":         {version: "1.2.2", fails: "is empty"},
		"one that is not there":         {version: "1.2.1", fails: "no section of version 1.2.1"},
		"one that another begins with":  {version: "1.2", fails: "no section"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			got, err := Section(text, tt.version)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Fatalf("error is %v, want one with %q", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("section (-want +got):\n%s", diff)
			}
		})
	}
}
