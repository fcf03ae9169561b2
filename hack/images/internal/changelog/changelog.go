// Package changelog reads one version's section of a changelog in the form of Keep
// a Changelog.
package changelog

import (
	"fmt"
	"strings"
)

// Section gives what stands below the heading "## [version]", without it. A
// version that is not there, or has nothing to say, is an error.
func Section(text, version string) (string, error) {
	var section []string
	inside, found := false, false
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(line, "## ["); ok {
			name, _, _ := strings.Cut(heading, "]")
			inside = name == version
			found = found || inside
			continue
		}
		// The links of all versions stand at the end of the file.
		if inside && !isLink(line) {
			section = append(section, line)
		}
	}
	content := strings.TrimSpace(strings.Join(section, ""))
	switch {
	case !found:
		return "", fmt.Errorf("the changelog has no section of version %s: turn [Unreleased] into ## [%s] - with the date, before the tag", version, version)
	case content == "":
		return "", fmt.Errorf("the changelog's section of version %s is empty: write what has changed", version)
	}
	return content + "\n", nil
}

// isLink tells a line such as "[1.2.3]: https://…".
func isLink(line string) bool {
	name, target, found := strings.Cut(line, "]: ")
	return found && strings.HasPrefix(name, "[") && strings.HasPrefix(target, "https://")
}
