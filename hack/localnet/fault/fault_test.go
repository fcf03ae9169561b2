package fault_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/fault"
)

func TestRulesSurviveARoundTrip(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		json string
		want []fault.Rule
	}{
		"none":                                   {`[]`, []fault.Rule{}},
		"slow answers":                           {`[{"method":"getSlot","latency":"250ms","jitter":"1s"}]`, []fault.Rule{{Method: "getSlot", Latency: 250 * time.Millisecond, Jitter: time.Second}}},
		"a rate limit with Retry-After":          {`[{"probability":0.5,"status":429,"retryAfter":"2s"}]`, []fault.Rule{{Probability: 0.5, Status: 429, RetryAfter: 2 * time.Second}}},
		"an error after acting":                  {`[{"method":"sendTransaction","afterActing":true,"error":{"code":-32603,"message":"no"}}]`, []fault.Rule{{Method: "sendTransaction", AfterActing: true, Error: fault.Error{Code: -32603, Message: "no"}}}},
		"a cut connection and a hanging call":    {`[{"cut":true},{"hang":true}]`, []fault.Rule{{Cut: true}, {Hang: true}}},
		"a dropped transaction":                  {`[{"drop":true}]`, []fault.Rule{{Drop: true}}},
		"wrong answers":                          {`[{"empty":true},{"health":"ok"},{"frozenBlockhash":true}]`, []fault.Rule{{Empty: true}, {Health: fault.HealthOK}, {FrozenBlockhash: true}}},
		"a node that lags, with a short history": {`[{"lag":12,"history":100}]`, []fault.Rule{{Lag: 12, History: 100}}},
		"a node that claims to be ahead":         {`[{"ahead":100,"heightAhead":22000000},{"method":"getLatestBlockhash","slotAsHeight":true}]`, []fault.Rule{{Ahead: 100, HeightAhead: 22_000_000}, {Method: "getLatestBlockhash", SlotAsHeight: true}}},
		"false outcomes":                         {`[{"method":"getSignatureStatuses","outcome":"succeeds"},{"outcome":"fails","err":{"InstructionError":[2,{"Custom":1}]}}]`, []fault.Rule{{Method: "getSignatureStatuses", Outcome: fault.OutcomeSucceeds}, {Outcome: fault.OutcomeFails, Err: `{"InstructionError":[2,{"Custom":1}]}`}}},
		"sockets":                                {`[{"socket":"cut","probability":0.01},{"socket":"silent"}]`, []fault.Rule{{Socket: fault.SocketCut, Probability: 0.01}, {Socket: fault.SocketSilent}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := fault.ParseRules([]byte(test.json))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			written, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			again, err := fault.ParseRules(written)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, again); diff != "" {
				t.Errorf("written as %s and read again (-want +got):\n%s", written, diff)
			}
		})
	}
}

func TestParseRulesErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ json, want string }{
		"no JSON":                                    {`[`, "expected a JSON array of rules"},
		"an object":                                  {`{}`, "expected a JSON array of rules"},
		"more than one value":                        {`[] []`, "got more after it"},
		"a rule that is a string":                    {`["cut"]`, "fault rule 0: "},
		"an unknown field":                           {`[{"cut":true},{"dely":"1s"}]`, `fault rule 1: json: unknown field "dely"`},
		"a field of another type":                    {`[{"status":"429"}]`, "fault rule 0: status: got a string, expected int"},
		"a duration without a unit":                  {`[{"latency":250}]`, "fault rule 0: latency: got a number, expected "},
		"a string that is not a duration":            {`[{"jitter":"soon"}]`, `fault rule 0: got "soon", expected a duration as a string, such as "250ms"`},
		"a negative duration":                        {`[{"latency":"-1s"}]`, "expected no negative duration"},
		"a probability above 1":                      {`[{"cut":true,"probability":1.5}]`, "probability is 1.5, expected more than 0 and up to 1"},
		"no effect":                                  {`[{"method":"getSlot"}]`, "the rule has no effect"},
		"a status that is not an error":              {`[{"status":200}]`, "status is 200, expected an HTTP status of 400 to 599"},
		"retryAfter without a status":                {`[{"cut":true,"retryAfter":"1s"}]`, "retryAfter is set without a status"},
		"an error without a code":                    {`[{"error":{"message":"no"}}]`, "error.message is set without an error.code"},
		"an unknown field in an error":               {`[{"error":{"kode":1}}]`, `unknown field "kode"`},
		"two failures":                               {`[{"cut":true,"hang":true}]`, "more than one of status, error, cut and hang"},
		"afterActing without a failure or a latency": {`[{"drop":true,"afterActing":true}]`, "afterActing is set without"},
		"drop for another method":                    {`[{"method":"getSlot","drop":true}]`, `drop is for method sendTransaction, got "getSlot"`},
		"frozenBlockhash for another method":         {`[{"method":"getSlot","frozenBlockhash":true}]`, "frozenBlockhash is for method getLatestBlockhash"},
		"health for another method":                  {`[{"method":"getSlot","health":"ok"}]`, "health is for method getHealth"},
		"an unknown health":                          {`[{"health":"fine"}]`, `health is "fine", expected "ok" or "behind"`},
		"an unknown outcome":                         {`[{"outcome":"lands"}]`, `outcome is "lands", expected "succeeds" or "fails"`},
		"an outcome for another method":              {`[{"method":"getSlot","outcome":"succeeds"}]`, "outcome is for method getSignatureStatuses, simulateTransaction or sendTransaction"},
		"a failure without an error":                 {`[{"outcome":"fails"}]`, `err and outcome "fails" go together`},
		"an error without a failure":                 {`[{"outcome":"succeeds","err":{"InstructionError":[2,{"Custom":1}]}}]`, `err and outcome "fails" go together`},
		"an unknown fault of a socket":               {`[{"socket":"slow"}]`, `socket is "slow", expected "cut" or "silent"`},
		"a cut socket for one method":                {`[{"socket":"cut","method":"accountSubscribe"}]`, "expected no method"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := fault.ParseRules([]byte(test.json))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// failurePattern plans a number of calls of a method and returns a character for each: x for
// a call that fails, a dot for a call that does not.
func failurePattern(in *fault.Injector, method string, calls int) string {
	var out strings.Builder
	for range calls {
		if in.Plan(method).Failure != nil {
			out.WriteByte('x')
		} else {
			out.WriteByte('.')
		}
	}
	return out.String()
}

func TestSameSeedDrawsTheSameFaults(t *testing.T) {
	t.Parallel()
	rules := []fault.Rule{{Probability: 0.5, Cut: true}}
	draw := func(seed uint64, disturb bool) string {
		in := fault.NewInjector(seed)
		if err := in.Set(rules); err != nil {
			t.Fatal(err)
		}
		if disturb {
			failurePattern(in, "getSlot", 17)
			in.Notify("getBalance")
			in.CutSocket()
		}
		return failurePattern(in, "getBalance", 64)
	}
	if a, b := draw(1, false), draw(1, true); a != b {
		t.Errorf("calls of other methods change the draws of one seed:\n%s\n%s", a, b)
	}
	if a, b := draw(1, false), draw(2, false); a == b {
		t.Errorf("two seeds draw the same faults: %s", a)
	}
}

func TestARuleAppliesWithItsProbability(t *testing.T) {
	t.Parallel()
	const calls = 10_000
	tests := map[string]struct {
		probability float64
		least, most int
	}{
		"always by default": {0, calls, calls},
		"always":            {1, calls, calls},
		"a third":           {0.3, 2_850, 3_150},
		"rarely":            {0.01, 70, 130},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fault.NewInjector(7)
			if err := in.Set([]fault.Rule{{Method: "getSlot", Probability: test.probability, Status: 503}}); err != nil {
				t.Fatal(err)
			}
			n := strings.Count(failurePattern(in, "getSlot", calls), "x")
			if n < test.least || n > test.most {
				t.Errorf("the rule applied to %d of %d calls, want %d to %d", n, calls, test.least, test.most)
			}
			if applied := in.Applied()["status"]; applied != uint64(n) {
				t.Errorf("Applied counts %d, want %d", applied, n)
			}
		})
	}
}

func TestEffectsOfSeveralRulesAreCombined(t *testing.T) {
	t.Parallel()
	in := fault.NewInjector(0)
	rules := []fault.Rule{
		{Latency: time.Second}, {Latency: 2 * time.Second}, {Latency: time.Minute, AfterActing: true},
		{Lag: 5}, {Lag: 9}, {Lag: 7}, {History: 50}, {History: 20}, {History: 30},
		{Method: "getBalance", Cut: true}, {Status: 500}, {Hang: true},
		{Drop: true}, {Empty: true}, {FrozenBlockhash: true}, {Health: fault.HealthBehind},
		{Ahead: 3}, {Ahead: 100}, {HeightAhead: 7}, {HeightAhead: 6}, {SlotAsHeight: true},
		{Outcome: fault.OutcomeFails, Err: `"AccountInUse"`}, {Outcome: fault.OutcomeSucceeds},
	}
	if err := in.Set(rules); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ want fault.Plan }{
		"getSlot":            {fault.Plan{}},
		"sendTransaction":    {fault.Plan{Rule: fault.Rule{Drop: true, Outcome: fault.OutcomeFails, Err: `"AccountInUse"`}}},
		"getLatestBlockhash": {fault.Plan{Rule: fault.Rule{FrozenBlockhash: true}}},
		"getHealth":          {fault.Plan{Rule: fault.Rule{Health: fault.HealthBehind}}},
	}
	for method, test := range tests {
		want := test.want
		want.Before, want.After, want.Lag, want.History, want.Empty = 3*time.Second, time.Minute, 9, 20, true
		want.Failure = &fault.Rule{Status: 500}
		want.Ahead, want.HeightAhead, want.SlotAsHeight = 100, 7, true
		if diff := cmp.Diff(want, in.Plan(method)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", method, diff)
		}
	}
	if lag, lost := in.Notify("slotSubscribe"); lag != 9 || lost {
		t.Errorf("notifications lag %d and are lost: %t; want 9, false", lag, lost)
	}
	if in.CutSocket() {
		t.Error("a socket is cut without a rule")
	}
}

func TestJitterSpreadsOverItsRange(t *testing.T) {
	t.Parallel()
	in := fault.NewInjector(3)
	if err := in.Set([]fault.Rule{{Latency: time.Second, Jitter: time.Second}}); err != nil {
		t.Fatal(err)
	}
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		d := in.Plan("getSlot").Before
		low, high = min(low, d), max(high, d)
	}
	if low < time.Second || low > 1100*time.Millisecond || high < 1900*time.Millisecond || high >= 2*time.Second {
		t.Errorf("delays are from %s to %s, want from 1s up to 2s", low, high)
	}
}

func TestInvalidRulesChangeNothing(t *testing.T) {
	t.Parallel()
	in := fault.NewInjector(0)
	good := []fault.Rule{{Cut: true}}
	if err := in.Set(good); err != nil {
		t.Fatal(err)
	}
	if err := in.Set([]fault.Rule{{Hang: true}, {Status: 1}}); err == nil || !strings.Contains(err.Error(), "fault rule 1: status is 1") {
		t.Errorf("got %v, want an error that names the rule and the field", err)
	}
	if diff := cmp.Diff(good, in.Rules()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
