package config_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	const key16 = "0123456789abcdef"
	tests := map[string]struct {
		content string
		want    []string
		problem string
	}{
		"two keys, a comment and an empty line": {"# for the wallet\n" + key16 + "\n\n  " + key16 + "2 \r\n", []string{key16, key16 + "2"}, ""},
		"a key that is too short":               {canary + "\n", nil, "line 1: expected a key of 16 to 256 visible ASCII characters without spaces, received 12 characters"},
		"a key with a space":                    {key16 + "\n" + canary + " " + canary, nil, "line 2: expected"},
		"only comments":                         {"# " + canary, nil, "has no key"},
		"an empty file":                         {"", nil, "is empty"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := parse(t, flags(t, "--api-keys-file="+file(t, tc.content))).Load()
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) || strings.Contains(err.Error(), canary) {
					t.Fatalf("error %v, want one that contains %q and no value", err, tc.problem)
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
			t.Errorf("%d keys, error %v; want no keys and no error", len(c.APIKeys), err)
		}
	})
}
