package arena

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/router"
)

// A rule that the local chain refuses would end a running drill.
func TestFaultsAreValid(t *testing.T) {
	t.Parallel()
	for name, rules := range faultRules() {
		if err := fault.Validate(rules); err != nil || len(rules) == 0 {
			t.Errorf("fault %q: %d rules, error %v; want rules without an error", name, len(rules), err)
		}
	}
	for _, name := range hardFaults() {
		if !slices.Contains(faultNames(), name) {
			t.Errorf("hard fault %q is unknown", name)
		}
	}
}

func TestLiesAreValid(t *testing.T) {
	t.Parallel()
	var all []fault.Rule
	for name, rules := range lieRules() {
		if err := fault.Validate(rules); err != nil || len(rules) == 0 {
			t.Errorf("lie %q: %d rules, error %v; want rules without an error", name, len(rules), err)
		}
		all = append(all, rules...)
	}
	for _, name := range statusLies() {
		if !slices.Contains(LieNames(), name) {
			t.Errorf("lie %q about statuses is unknown", name)
		}
	}
	for name, has := range map[string]func(fault.Rule) bool{
		"slots":       func(r fault.Rule) bool { return r.Ahead > 0 },
		"heights":     func(r fault.Rule) bool { return r.HeightAhead > 0 },
		"statuses":    func(r fault.Rule) bool { return r.Method == "getSignatureStatuses" && r.Outcome != "" },
		"simulations": func(r fault.Rule) bool { return r.Method == "simulateTransaction" && r.Outcome != "" },
	} {
		if !slices.ContainsFunc(all, has) {
			t.Errorf("no lie about %s", name)
		}
	}
}

// Refused router settings, alone or together, end a drill.
func TestRouterFaultsAreValid(t *testing.T) {
	t.Parallel()
	var all router.Settings
	for name, settings := range routerFaults(solana.PublicKey{1}) {
		if err := settings.Validate(); err != nil || settings.Wide == 0 && len(settings.Faults)+len(settings.Lies) == 0 {
			t.Errorf("router fault %q: settings %+v, error %v; want faults or lies without an error", name, settings, err)
		}
		all.Faults, all.Lies = append(all.Faults, settings.Faults...), append(all.Lies, settings.Lies...)
	}
	if err := all.Validate(); err != nil {
		t.Error(err)
	}
}

func TestRunRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	validOptions := func() Options {
		return Options{
			Root: ".", State: t.TempDir(), Duration: 1, Quiet: 1, Slot: 1, Relays: 1, Endpoints: 1, Payers: 1, FinalizeAfter: 4, Progress: io.Discard,
		}
	}
	tests := map[string]struct {
		change func(*Options)
		want   string
	}{
		"no checkout":             {func(o *Options) { o.Root = "" }, "are required"},
		"no progress writer":      {func(o *Options) { o.Progress = nil }, "are required"},
		"no load":                 {func(o *Options) { o.Duration = 0 }, "Duration 0s"},
		"no relay":                {func(o *Options) { o.Relays = 0 }, "0 relays"},
		"more swaps than spends":  {func(o *Options) { o.Swaps = 1.5 }, "Swaps is 1.5"},
		"no block can be forked":  {func(o *Options) { o.FinalizeAfter = 2 }, "FinalizeAfter is 2"},
		"no endpoint for a relay": {func(o *Options) { o.Endpoints = 0 }, "0 endpoints"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := validOptions()
			tc.change(&o)
			if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}
