package build_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/relay/contract"
)

type rule struct {
	name, expr, severity, summary, runbook string
}

func rules(t *testing.T, in build.Input) []rule {
	t.Helper()
	groups, _, err := unstructured.NestedSlice(asUnstructured(t, single(t, build.Objects(in), "PrometheusRule")).Object, "spec", "groups")
	if err != nil || len(groups) != 1 {
		t.Fatalf("%d groups, error %v; want one group", len(groups), err)
	}
	var all []rule
	for _, r := range groups[0].(map[string]any)["rules"].([]any) {
		text := func(path ...string) string {
			s, _, err := unstructured.NestedString(r.(map[string]any), path...)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		all = append(all, rule{text("alert"), text("expr"), text("labels", "severity"), text("annotations", "summary"), text("annotations", "runbook_url")})
	}
	return all
}

// everyRule is a RelayPool with swaps and caps, which some rules need.
func everyRule(t *testing.T) build.Input {
	t.Helper()
	in := fixtures(t)["full"]
	in.Pool.Spec.Swap = load(t, "swap").Spec.Swap
	return in
}

var (
	selector = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"`)
	labelUse = regexp.MustCompile(`\$labels\.([a-z_]+)`)
	grouping = regexp.MustCompile(`by \(([a-z_]+)\)`)
)

// An alert over a metric that no relay exposes never fires, and nothing shows that.
func TestAlertsUseExistingMetrics(t *testing.T) {
	t.Parallel()
	metrics := map[string]contract.Metric{}
	for _, m := range contract.Metrics() {
		metrics[m.Name] = m
	}
	for _, r := range rules(t, everyRule(t)) {
		found := selector.FindAllStringSubmatch(r.expr, -1)
		if len(found) == 0 || len(found) != strings.Count(r.expr, "relaypool_") {
			t.Errorf("%s: %d selectors for %d metrics, want one for each metric: %s", r.name, len(found), strings.Count(r.expr, "relaypool_"), r.expr)
		}
		var labels []string
		for _, f := range found {
			metric, known := metrics[f[1]]
			if !known {
				t.Errorf("%s: no relay exposes %s", r.name, f[1])
			}
			labels = append(labels, metric.Labels...)
			if !strings.HasPrefix(f[2], `namespace="pools",pool="shielded"`) {
				t.Errorf("%s: %s{%s} does not select one fleet", r.name, f[1], f[2])
			}
			for _, m := range matcher.FindAllStringSubmatch(f[2], -1) {
				if m[1] != "namespace" && m[1] != "pool" && !slices.Contains(metric.Labels, m[1]) {
					t.Errorf("%s: %s has no label %s", r.name, f[1], m[1])
				}
			}
		}
		kept := grouping.FindAllStringSubmatch(r.expr, -1)
		for _, g := range kept {
			if !slices.Contains(labels, g[1]) {
				t.Errorf("%s: none of its metrics has the label %s", r.name, g[1])
			}
		}
		for _, l := range labelUse.FindAllStringSubmatch(r.summary, -1) {
			if !slices.ContainsFunc(kept, func(g []string) bool { return g[1] == l[1] }) {
				t.Errorf("%s: the summary uses the label %s, which the expression drops", r.name, l[1])
			}
		}
	}
}

// Each alert has a page of its own, at this release. hack/monitoring checks that each page
// is complete and that each belongs to an alert.
func TestAlertsLinkToExistingPages(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range rules(t, everyRule(t)) {
		if want := "https://github.com/relaypool/relaypool/blob/v" + contract.Version + "/docs/reference/alerts/" + r.name + ".md"; r.runbook != want {
			t.Errorf("%s links to %s, want %s", r.name, r.runbook, want)
		}
		if _, err := os.Stat(filepath.Join("../../../docs/reference/alerts", r.name+".md")); err != nil {
			t.Errorf("%s has no page: %v", r.name, err)
		}
		if seen[r.name] {
			t.Errorf("%s exists twice", r.name)
		}
		seen[r.name] = true
		if !strings.HasPrefix(r.name, "Relaypool") || r.summary == "" || r.severity != "critical" && r.severity != "warning" {
			t.Errorf("%s: severity %q, summary %q; want a name that begins with Relaypool, critical or warning, and a summary", r.name, r.severity, r.summary)
		}
	}
}

func TestAlertsFollowTheSpec(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*build.Input)
		alert  string
		want   bool
	}{
		"a fleet that reports nothing":     {func(*build.Input) {}, "RelaypoolNoRelayReports", true},
		"a fleet that the gate keeps at 0": {func(in *build.Input) { in.Withheld = true }, "RelaypoolNoRelayReports", false},
		"a fleet of 0 replicas":            {func(in *build.Input) { in.Replicas = ptr.To[int32](0) }, "RelaypoolNoRelayReports", false},
		"spend caps nearly reached":        {func(*build.Input) {}, "RelaypoolSpendCapNearlyReached", true},
		"no spend caps": {func(in *build.Input) {
			in.Pool.Spec.FeePayers.SpendCaps = v1alpha1.SpendCaps{TransfersDayLamports: ptr.To[int64](0)}
		}, "RelaypoolSpendCapNearlyReached", false},
		"only the default cap on transfers":                     {func(in *build.Input) { in.Pool.Spec.FeePayers.SpendCaps = v1alpha1.SpendCaps{} }, "RelaypoolSpendCapNearlyReached", true},
		"a signer that does not sign":                           {func(*build.Input) {}, "RelaypoolSignerUnavailable", true},
		"no signers":                                            {func(in *build.Input) { in.Pool.Spec.FeePayers.Signers = nil }, "RelaypoolSignerUnavailable", false},
		"spend caps reached":                                    {func(*build.Input) {}, "RelaypoolSpendCapReached", true},
		"the router, with swaps":                                {func(*build.Input) {}, "RelaypoolRouterDown", true},
		"no router, without swaps":                              {func(in *build.Input) { in.Pool.Spec.Swap = nil }, "RelaypoolRouterDown", false},
		"swaps that are under way, after swaps were turned off": {func(in *build.Input) { in.Pool.Spec.Swap = nil }, "RelaypoolSwapOverdue", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := everyRule(t)
			tc.change(&in)
			got := slices.ContainsFunc(rules(t, in), func(r rule) bool { return r.name == tc.alert })
			if got != tc.want {
				t.Errorf("%s exists: %t, want %t", tc.alert, got, tc.want)
			}
		})
	}
}

// The minimum of a payer cannot be spent: the runway ends at the minimum.
func TestARunwayEndsAtTheMinimum(t *testing.T) {
	t.Parallel()
	in := everyRule(t)
	in.Pool.Spec.FeePayers.MinimumBalanceLamports = ptr.To[int64](70_000_000)
	all := rules(t, in)
	for _, name := range []string{"RelaypoolRunwayBelowOneDay", "RelaypoolRunwayBelowTwoHours"} {
		i := slices.IndexFunc(all, func(r rule) bool { return r.name == name })
		if i < 0 || !strings.Contains(all[i].expr, " - 70000000, 0)") {
			t.Errorf("%s: rule %d of %v, want one that subtracts 70000000 from each balance", name, i, all)
		}
	}
}

// The alert must leave a day for sending more, but must not fire as soon as a balance is
// below the target.
func TestAPayerIsLowBetweenMinimumAndTarget(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		minimum, target *int64
		want            string
	}{
		"a fifth of the way to target":             {ptr.To[int64](50_000_000), ptr.To[int64](1_000_000_000), "< 240000000"},
		"at the minimum when the target equals it": {ptr.To[int64](50_000_000), ptr.To[int64](50_000_000), "< 50000000"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := everyRule(t)
			in.Pool.Spec.FeePayers.MinimumBalanceLamports, in.Pool.Spec.FeePayers.TargetBalanceLamports = tc.minimum, tc.target
			all := rules(t, in)
			i := slices.IndexFunc(all, func(r rule) bool { return r.name == "RelaypoolFeePayerBalanceLow" })
			if i < 0 || !strings.HasSuffix(all[i].expr, tc.want) {
				t.Errorf("rule %d of %v, want one that ends %s", i, all, tc.want)
			}
		})
	}
}
