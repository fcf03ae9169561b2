package httpapi_test

import (
	"testing"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

// The fixture says that 2048 leaves of generation 1 are final.
func TestOnlyFinalLeavesMayBeKept(t *testing.T) {
	t.Parallel()
	const kept, asked = "max-age=31536000, immutable", "no-cache"
	tests := map[string]struct{ query, want string }{
		"all leaves are final":       {"?from_index=1024&limit=1024", kept},
		"by the older name":          {"?fromIndex=0&limit=5", kept},
		"one leaf may change":        {"?from_index=1024&limit=1025", asked},
		"the list may grow":          {"?from_index=1024", asked},
		"more leaves than there are": {"?from_index=2999&limit=2", asked},
		"no index":                   {"?limit=7", asked},
		"no leaf":                    {"?from_index=5000&limit=1", asked},
		"the limit is lowered to more than are final": {"?from_index=0&limit=9999999", asked},
	}
	f := newFixture(t, publishedLeaves(3000))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 {
				r := get("/commitments" + tt.query)
				resp, _ := f.do(t, r)
				r.Header.Set("If-None-Match", resp.Header.Get("Etag"))
				if got := resp.Header.Get("Cache-Control"); got != tt.want {
					t.Errorf("Cache-Control is %q, want %q", got, tt.want)
				}
			}
		})
	}
	t.Run("another generation", func(t *testing.T) {
		t.Parallel()
		d := publishedLeaves(3000)
		inner := d.position
		d.position = func() (pos commitments.Position, err error) {
			pos, err = inner()
			pos.Generation = 2
			return pos, err
		}
		read := d.read
		d.read = func(_, from uint64, limit int) ([]commitments.IndexedCommitment, error) { return read(1, from, limit) }
		resp, _ := newFixture(t, d).do(t, get("/commitments?from_index=0&limit=1024"))
		if got := resp.Header.Get("Cache-Control"); got != asked {
			t.Errorf("Cache-Control is %q, want %q", got, asked)
		}
	})
}
