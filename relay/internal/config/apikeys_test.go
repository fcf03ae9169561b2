package config_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	const long = "0123456789abcdef"
	tests := map[string]struct {
		content string
		want    []string
		problem string
	}{
		"two keys, a comment and an empty line": {"# for the wallet\n" + long + "\n\n  " + long + "2 \r\n", []string{long, long + "2"}, ""},
		"a key that can be guessed":             {canary + "\n", nil, "line 1: expected a key of 16 to 256 visible ASCII characters without spaces, received 12 characters"},
		"a key with a space":                    {long + "\n" + canary + " " + canary, nil, "line 2: expected"},
		"nothing but comments":                  {"# " + canary, nil, "has no key"},
		"an empty file":                         {"", nil, "is empty"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := parse(t, flags(t, "--api-keys-file="+file(t, tc.content))).Load()
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) || strings.Contains(err.Error(), canary) {
					t.Fatalf("error %v, want %q in it and no value", err, tc.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var want [][sha256.Size]byte
			for _, key := range tc.want {
				want = append(want, sha256.Sum256([]byte(key)))
			}
			if diff := cmp.Diff(want, c.APIKeys); diff != "" {
				t.Errorf("hashes (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("no file serves everybody", func(t *testing.T) {
		t.Parallel()
		c, err := parse(t, flags(t)).Load()
		if err != nil || c.APIKeys != nil {
			t.Errorf("%d keys and %v, want none", len(c.APIKeys), err)
		}
	})
}
