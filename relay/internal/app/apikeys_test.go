package app

import (
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/config"
)

func TestAPIKeysAreTakenOverWhenTwoReadingsAreEqual(t *testing.T) {
	t.Parallel()
	key := func(name string) config.APIKey { return config.APIKey{Hash: sha256.Sum256([]byte(name)), Name: name} }
	old, both, half := []config.APIKey{key("a")}, []config.APIKey{key("a"), key("b")}, []config.APIKey{key("b")}
	fault := errors.New("line 2: a fault")
	type reading struct {
		keys []config.APIKey
		err  error
	}
	tests := map[string]struct {
		readings []reading
		want     []string // the names of the valid keys
		changes  int
		problem  bool
	}{
		"an equal file changes nothing":                  {[]reading{{keys: old}, {keys: old}}, []string{"a"}, 0, false},
		"a changed file is taken over when read again":   {[]reading{{keys: both}, {keys: both}}, []string{"a", "b"}, 1, false},
		"a file that is still being written is not":      {[]reading{{keys: half}, {keys: both}}, []string{"a"}, 0, false},
		"and is once it is complete":                     {[]reading{{keys: half}, {keys: both}, {keys: both}}, []string{"a", "b"}, 1, false},
		"a faulty file leaves the keys and is a problem": {[]reading{{err: fault}, {err: fault}}, []string{"a"}, 0, true},
		"a mended file ends the problem":                 {[]reading{{err: fault}, {keys: half}, {keys: half}}, []string{"b"}, 1, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var k apiKeys
			k.set(old)
			changes := 0
			for _, r := range test.readings {
				if changed, _ := k.reread(r.keys, r.err); changed {
					changes++
				}
			}
			var got []string
			for _, valid := range k.now() {
				got = append(got, valid.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || changes != test.changes {
				t.Errorf("%d changes, want %d; keys (-want +got):\n%s", changes, test.changes, diff)
			}
			if problem := k.problem(t.Context()); (problem != nil) != test.problem {
				t.Errorf("the problem for /health is %v, want one: %t", problem, test.problem)
			}
		})
	}
}
