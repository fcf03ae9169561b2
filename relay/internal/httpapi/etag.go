package httpapi

import "strings"

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
