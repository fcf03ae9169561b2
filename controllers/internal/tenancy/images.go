package tenancy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/relaypool/relaypool/relay/commandline"
)

// anyBelow ends a pattern that stands for all repositories below a path.
const anyBelow = "/*"

// ParseRepository returns the full name of an image repository, including the registry. If text
// ends in /*, it stands for all repositories below that path, and the returned name ends in /*
// too.
func ParseRepository(text string) (string, error) {
	prefix, all := strings.CutSuffix(text, anyBelow)
	if all {
		prefix += "/x" // the parser needs a whole name
	}
	named, err := reference.ParseNormalizedNamed(prefix)
	if err != nil || !reference.IsNameOnly(named) {
		return "", fmt.Errorf("expected a repository without tag and digest, such as registry.example/relaypool/relay, or registry.example/relaypool%s for all below it, received %d characters of another form", anyBelow, len(text))
	}
	if all {
		return strings.TrimSuffix(named.Name(), "/x") + anyBelow, nil
	}
	return named.Name(), nil
}

// imageFault returns what is wrong with the image of a RelayPool, or "" if the image is allowed.
func (p Policy) imageFault(image, ownImage string) string {
	if len(p.Images) == 0 || image == "" || image == ownImage {
		return ""
	}
	received := "a text that is not an image name"
	if named, err := reference.ParseNormalizedNamed(image); err == nil {
		if received = named.Name(); slices.ContainsFunc(p.Images, func(pattern string) bool { return matches(pattern, named.Name()) }) {
			return ""
		}
	}
	return fmt.Sprintf("expected an image of %s, received %s: name one of these, omit the field for the operator's own, or ask the operator's administrator to allow it (%s)",
		strings.Join(p.Images, ", "), received, commandline.Setting(FlagImages))
}

func matches(pattern, repository string) bool {
	if prefix, all := strings.CutSuffix(pattern, "*"); all {
		return strings.HasPrefix(repository, prefix)
	}
	return pattern == repository
}
