package httpapi

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
)

// listTag makes the entity tag of a list. The leaves of a generation do not change. But after a
// restore of the database, other leaves may get the same generation number. The tag therefore
// contains the last leaf too. Each format has its own tag, because its bytes differ.
func (a *api) listTag(ctx context.Context, l *list) (string, error) {
	if l.from == l.to {
		return fmt.Sprintf(`"%d-%d-0-%s"`, l.pos.Generation, l.from, l.format), nil
	}
	last := l.to - 1
	leaves, err := a.chunks.leaves(ctx, l.store, l.pos.Published, last/chunkLeaves)
	if err != nil {
		return "", err
	}
	const tagBytes = 8 // bytes of the leaf in the tag
	at := int(last%chunkLeaves) * leafSize
	leaf, err := a.chunks.appendTo(nil, l.store, leaves, at, at+tagBytes)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`"%d-%d-%d-%s-%s"`, l.pos.Generation, l.from, l.to-l.from, hex.EncodeToString(leaf), l.format), nil
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
