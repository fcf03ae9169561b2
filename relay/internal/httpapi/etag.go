package httpapi

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
)

// listTag makes the entity tag of the list of the leaves [from, to). The leaves of a generation do
// not change. But after a restore of the database, other leaves may get the same generation number.
// The tag therefore contains the last leaf too.
func (a *api) listTag(ctx context.Context, generation, from, to uint64) (string, error) {
	if from == to {
		return fmt.Sprintf(`"%d-%d-0"`, generation, from), nil
	}
	last, err := a.Commitments.Read(ctx, generation, to-1, 1)
	if err != nil {
		return "", err
	}
	const tagBytes = 8 // bytes of the leaf in the tag
	return fmt.Sprintf(`"%d-%d-%d-%s"`, generation, from, to-from, hex.EncodeToString(last[0].Commitment[:tagBytes])), nil
}

// matches reports whether an If-None-Match names the tag. Comparison is weak (RFC
// 9110 §13.1.2), and * matches any tag.
func matches(header, tag string) bool {
	const longest = 256
	if len(header) > longest {
		return false
	}
	for _, candidate := range strings.Split(header, ",") {
		if candidate = strings.TrimSpace(candidate); candidate == "*" || strings.TrimPrefix(candidate, "W/") == tag {
			return true
		}
	}
	return false
}
