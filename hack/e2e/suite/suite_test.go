package suite

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/relaypool/relaypool/hack/drill/account"
	"github.com/relaypool/relaypool/hack/e2e/judge"
	"github.com/relaypool/relaypool/hack/load"
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

func TestServiceIsHeldAgainWhenEveryCallHasEnded(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Date(2026, 11, 21, 12, 0, seconds, 0, time.UTC) }
	answer := func(sent, came, status int) load.Answer {
		return load.Answer{Call: load.CallTransact, Sent: at(sent), At: at(came), Status: status, RequestID: uuid.UUID{1}}
	}
	s := &suite{services: []service{
		{scenario: "upgrade", from: at(0), to: at(10), bounds: judge.Bounds{Away: mostAway, Share: orderly}},
		{scenario: "eviction", from: at(10), to: at(12), bounds: bounds(1, orderly)},
	}}
	records := []load.Record{{Requests: []load.Request{{Answers: []load.Answer{answer(1, 2, 202), answer(3, 4, 202)}}}}}
	records = append(records, load.Record{Requests: []load.Request{{Answers: []load.Answer{answer(11, 51, 0)}}}}) // a fleet of one pod may
	if err := s.servedAll(records); err != nil {
		t.Errorf("clients were served: %v", err)
	}
	// Its failure comes long after the scenario.
	records[0].Requests[0].Answers = append(records[0].Requests[0].Answers, answer(5, 45, 0))
	if err := s.servedAll(records); err == nil || !strings.Contains(err.Error(), "the scenario upgrade: 0 of 3 calls were refused and 1 stayed without an answer") {
		t.Errorf("error %v, want one of the upgrade", err)
	}
}

func TestWhatHadToBeRefusedIsAFaultInWords(t *testing.T) {
	t.Parallel()
	refusal := apierrors.NewTooManyRequests("the disruption budget demo needs 2 healthy pods", 10)
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"refused":               {refusal, ""},
		"let through":           {nil, "a second eviction was let through, expected a refusal"},
		"failed in another way": {apierrors.NewInternalError(errors.New("etcd is away")), "a second eviction failed, and was not refused as expected: Internal error occurred: etcd is away"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := ""
			if err := denied("a second eviction", tc.err, apierrors.IsTooManyRequests); err != nil {
				said = err.Error()
			}
			if said != tc.want {
				t.Errorf("error %q, want %q", said, tc.want)
			}
		})
	}
}
