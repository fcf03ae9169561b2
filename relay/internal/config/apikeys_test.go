package config_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/config"
)

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	const key16 = "0123456789abcdef"
	hash := func(key string) [sha256.Size]byte { return sha256.Sum256([]byte(key)) }
	tests := map[string]struct {
		content string
		want    []config.APIKey
		problem string
	}{
		"two keys, a comment and an empty line": {"# for the wallet\n" + key16 + "\n\n  " + key16 + "2 \r\n", []config.APIKey{{Hash: hash(key16)}, {Hash: hash(key16 + "2")}}, ""},
		"a name, and a name with a limit":       {key16 + " wallet\n" + key16 + "2\tsdk-1  1200", []config.APIKey{{Hash: hash(key16), Name: "wallet"}, {Hash: hash(key16 + "2"), Name: "sdk-1", PerMinute: 1200}}, ""},
		"two keys of one name":                  {key16 + " a 5\n" + key16 + "2 a 5", []config.APIKey{{Hash: hash(key16), Name: "a", PerMinute: 5}, {Hash: hash(key16 + "2"), Name: "a", PerMinute: 5}}, ""},
		"two limits of one name":                {key16 + " a 5\n" + key16 + "2 a 6", nil, "line 2: another key of the same name has another limit"},
		"a name that could be a key":            {key16 + " Canary_" + canary, nil, "line 1: name of"},
		"a limit without a name":                {key16 + " 600", nil, "line 1: name of 3 characters"},
		"a key on two lines":                    {key16 + " a\n" + key16 + " b", nil, "line 2: the key is on an earlier line"},
		"a limit of 0":                          {key16 + " a 0", nil, "line 1: limit of 1 characters: expected 1 to 1000000 requests a minute"},
		"four words":                            {key16 + " a 5 " + canary, nil, "line 1: expected a key, perhaps its name, and perhaps a limit, received 4 words"},
		"a key that is too short":               {canary + "\n", nil, "line 1: expected a key of 16 to 256 visible ASCII characters without spaces, received 12 characters"},
		"a key that is not ASCII":               {key16 + "\n" + canary + "äöü-0123", nil, "line 2: expected"},
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
			if diff := cmp.Diff(tc.want, c.APIKeys); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
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
