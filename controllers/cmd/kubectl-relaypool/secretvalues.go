package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// secretValues are texts that must not be in the bundle, and what is written instead.
type secretValues []replacement

type replacement struct{ value, instead []byte }

// shortest is the length below which a value is not looked for: it would be found everywhere.
const shortest = 6

// learn adds the values of a Secret, in the forms that a log or an object may show them: whole, by
// line, in base64, as JSON, and of a URL the credentials.
func (v *secretValues) learn(secret string, data map[string][]byte) {
	for key, value := range data {
		instead := []byte("[value of Secret " + secret + ", key " + key + "]")
		forms := []string{string(value), base64.StdEncoding.EncodeToString(value)}
		for line := range strings.Lines(string(value)) {
			line = strings.TrimSpace(line)
			forms = append(forms, line, base64.StdEncoding.EncodeToString([]byte(line)))
			forms = append(forms, credentials(line)...)
			forms = append(forms, longWords(line)...)
		}
		for _, form := range slices.Clone(forms) {
			if quoted, err := json.Marshal(form); err == nil {
				forms = append(forms, string(quoted[1:len(quoted)-1]))
			}
		}
		for _, form := range forms {
			if form = strings.TrimSpace(form); len(form) >= shortest {
				*v = append(*v, replacement{[]byte(form), instead})
			}
		}
	}
	// A long value may contain a short one.
	slices.SortFunc(*v, func(a, b replacement) int { return len(b.value) - len(a.value) })
}

// longWord is the length from which a word of a line may be a key.
const longWord = 16

// longWords returns the parts of a line that may be keys: of a file of API keys, of credentials or of
// JSON.
func longWords(line string) []string {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t=,:\"'{}[]", r) })
	return slices.DeleteFunc(words, func(word string) bool { return len(word) < longWord })
}

// learnURLs adds what may be credentials in URLs that the RelayPool itself contains.
func (v *secretValues) learnURLs(pool *v1alpha1.RelayPool) {
	var urls []string
	for i := range pool.Spec.Solana.Endpoints {
		urls = append(urls, pool.Spec.Solana.Endpoints[i].URL)
	}
	if swap := pool.Spec.Swap; swap != nil {
		urls = append(urls, swap.Router.URL)
		for i := range swap.FallbackRouters {
			urls = append(urls, swap.FallbackRouters[i].URL)
		}
	}
	for _, text := range urls {
		for _, part := range credentials(text) {
			if len(part) >= shortest {
				*v = append(*v, replacement{[]byte(part), []byte("[part of a URL of the RelayPool]")})
			}
		}
	}
	slices.SortFunc(*v, func(a, b replacement) int { return len(b.value) - len(a.value) })
}

// credentials returns the parts of a URL that are secret on their own: the password, the path's
// parts and the values of its query.
func credentials(text string) (parts []string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil
	}
	if password, ok := u.User.Password(); ok {
		parts = append(parts, password, url.QueryEscape(password))
	}
	for _, values := range u.Query() {
		parts = append(parts, values...)
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if len(part) >= longWord { // a key, rather than the name of a database or of a version
			parts = append(parts, part)
		}
	}
	return parts
}

// redact returns content without the values.
func (v secretValues) redact(content []byte) []byte {
	for _, r := range v {
		content = bytes.ReplaceAll(content, r.value, r.instead)
	}
	return content
}

// secretNames returns the names of all Secrets that the RelayPool refers to, and of those with its
// generated keys.
func secretNames(pool *v1alpha1.RelayPool) ([]string, error) {
	content, err := json.Marshal(&pool.Spec)
	if err != nil {
		return nil, fmt.Errorf("encode the RelayPool's spec: %w", err)
	}
	var spec any
	if err := json.Unmarshal(content, &spec); err != nil {
		return nil, fmt.Errorf("decode the RelayPool's spec: %w", err)
	}
	names := referredSecrets(spec, false)
	for i := range pool.Status.FeePayers {
		if name := pool.Status.FeePayers[i].SecretName; name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// referredSecrets collects names below fields such as urlSecretRef, secretRefs and
// imagePullSecrets, and the values of fields secretName.
func referredSecrets(value any, isSecret bool) (names []string) {
	switch value := value.(type) {
	case map[string]any:
		if name, ok := value["name"].(string); ok && isSecret {
			return []string{name}
		}
		for field, below := range value {
			if name, ok := below.(string); ok && field == "secretName" {
				names = append(names, name)
			}
			names = append(names, referredSecrets(below, strings.Contains(strings.ToLower(field), "secret"))...)
		}
	case []any:
		for _, below := range value {
			names = append(names, referredSecrets(below, isSecret)...)
		}
	}
	return names
}
