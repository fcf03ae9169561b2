package suite

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/drill/account"
)

func TestImagesAreChartValues(t *testing.T) {
	t.Parallel()
	for reference, want := range map[string]map[string]any{
		"ghcr.io/relaypool/relay:0.1.0":                {"registry": "ghcr.io", "repository": "relaypool/relay", "tag": "0.1.0"},
		"registry.your.org/team/relaypool/relay:0.2-a": {"registry": "registry.your.org", "repository": "team/relaypool/relay", "tag": "0.2-a"},
		// A registry with a port has a colon, too.
		"localhost:5000/relaypool/relay:0.1.0": {"registry": "localhost:5000", "repository": "relaypool/relay", "tag": "0.1.0"},
	} {
		if diff := cmp.Diff(want, imageValues(reference)); diff != "" {
			t.Errorf("values of %s (-want +got):\n%s", reference, diff)
		}
	}
}

func TestOnlyKnownScenariosAreTaken(t *testing.T) {
	t.Parallel()
	if err := Check(Names()); err != nil {
		t.Errorf("every scenario: %v", err)
	}
	if err := Check([]string{"install", "chaos"}); err == nil || !strings.Contains(err.Error(), `"chaos"`) || !strings.Contains(err.Error(), "rotation") {
		t.Errorf("an unknown one: error %v, want one that lists those that there are", err)
	}
	seen := make(map[string]bool)
	for _, s := range scenarios() {
		if seen[s.name] || s.claim == "" || s.run == nil {
			t.Errorf("scenario %q is there twice, or lacks its claim or its function", s.name)
		}
		seen[s.name] = true
	}
}

func TestClaimsThatDoNotHoldFailARun(t *testing.T) {
	t.Parallel()
	passed := account.Result{Name: "one-spend", Examined: 3}
	if err := verdict([]account.Result{passed, passed}); err != nil {
		t.Errorf("all hold: %v", err)
	}
	many := account.Result{Name: "told-is-true", Faults: strings.Split("abcdefgh", "")}
	err := verdict([]account.Result{passed, many, {Name: "swap-ends-once", Vacuous: true}})
	for _, want := range []string{"told-is-true does not hold: a; b; c; d; e; and 3 more", "swap-ends-once does not hold: there was nothing to examine"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	if len(many.Faults) != 8 {
		t.Error("the evidence itself was cut")
	}
}

func TestSamplesOfAMetricAreAddedUp(t *testing.T) {
	t.Parallel()
	page := []byte("# HELP relaypool_held help\n# TYPE relaypool_held gauge\nrelaypool_held 3\nrelaypool_held{kind=\"a b\"} 4\nrelaypool_held_submissions 100\nother 1\n")
	if got := sample(page, "relaypool_held"); got != 7 {
		t.Errorf("sum %d, want 7", got)
	}
	if got := sample(nil, "relaypool_held"); got != 0 {
		t.Errorf("sum %d of nothing", got)
	}
}
