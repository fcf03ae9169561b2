package alerts_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"go.yaml.in/yaml/v3"
)

// goldens are the objects that the operator makes.
const goldens = "../../controllers/internal/build/testdata/*.golden.yaml"

type object struct {
	Kind     string
	Metadata struct{ Namespace, Name string }
	Spec     yaml.Node
}

// rules gives the PrometheusRules of the goldens by the names of their RelayPools.
func rules(t *testing.T) map[string][]rulefmt.Rule {
	t.Helper()
	files, err := filepath.Glob(goldens)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]rulefmt.Rule{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
			var o object
			if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if o.Kind == "PrometheusRule" {
				all[o.Metadata.Name] = parse(t, file, &o.Spec)
			}
		}
	}
	if len(all) < 3 {
		t.Fatalf("%d PrometheusRules at %s", len(all), goldens)
	}
	return all
}

// parse reads rules as Prometheus does: strictly, with their expressions and templates.
func parse(t *testing.T, file string, spec *yaml.Node) []rulefmt.Rule {
	t.Helper()
	content, err := yaml.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, problems := rulefmt.Parse(content, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, problem := range problems {
		t.Errorf("%s: %v", file, problem)
	}
	if groups == nil || len(groups.Groups) != 1 {
		t.Fatalf("%s: no group of rules", file)
	}
	return groups.Groups[0].Rules
}

// healthy is a fleet of two pods in which nothing is wrong, a sample a minute
// for two hours and a half. {} stands for the fleet's labels.
const healthy = `
relaypool_backlog_jobs{,pod="a"} 3x150
relaypool_backlog_jobs{,pod="b"} 3x150
relaypool_backlog_oldest_age_seconds{,pod="a"} 2x150
relaypool_held_submissions{,pod="a",reason="fee_payer_empty"} 0x150
relaypool_held_submissions{,pod="a",reason="swap_price"} 4x150
relaypool_held_submissions{,pod="a",reason="no_route"} 4x150
relaypool_swaps_overdue{,pod="a"} 0x150
relaypool_submissions_total{,pod="a",kind="transfer",outcome="completed"} 0+30x150
relaypool_attempts_total{,pod="a",event="signed"} 0+60x150
relaypool_attempts_total{,pod="a",event="expired"} 0+1x150
relaypool_leases_total{,pod="a",event="claimed"} 0+60x150
relaypool_leases_total{,pod="a",event="reaped"} 2x150
relaypool_upkeep_runs_total{,pod="b",job="retention",outcome="done"} 0+1x150
relaypool_fee_payer_usable{,pod="a",payer="p"} 1x150
relaypool_fee_payer_usable{,pod="b",payer="p"} 1x150
relaypool_fee_payer_usable{,pod="a",payer="q"} 1x150
relaypool_fee_payer_balance_lamports{,pod="a",payer="p"} 4000000000x150
relaypool_fee_payer_balance_lamports{,pod="a",payer="q"} 4000000000x150
relaypool_fee_payer_balance_age_seconds{,pod="a",payer="p"} 9x150
relaypool_fee_payer_balance_age_seconds{,pod="b",payer="p"} 9x150
relaypool_ledger_unknown_signatures{,pod="a"} 1x150
relaypool_ledger_difference_lamports{,pod="a",payer="p"} 0x150
relaypool_ledger_gaps{,pod="a",payer="p"} 0x150
relaypool_ledger_unreconciled_age_seconds{,pod="a",payer="p"} 300x150
relaypool_spend_cap_lamports{,pod="a",cap="day"} 100x150
relaypool_spend_cap_left_lamports{,pod="a",cap="day"} 60x150
relaypool_rpc_endpoint_up{,pod="a",endpoint="x"} 1x150
relaypool_rpc_endpoint_up{,pod="b",endpoint="x"} 1x150
relaypool_rpc_endpoint_up{,pod="a",endpoint="y"} 1x150
relaypool_rpc_endpoint_lag_slots{,pod="a",endpoint="x"} 1x150
relaypool_rpc_endpoint_lag_slots{,pod="b",endpoint="x"} 1x150
relaypool_tree_self_check{,pod="a"} 1x150
relaypool_tree_self_check{,pod="b"} 1x150
relaypool_tree_leaves{,pod="a"} 1000+8x150
relaypool_index_published_leaves{,pod="a"} 990+8x150
relaypool_router_breaker_open{,pod="a"} 0x150
relaypool_router_breaker_open{,pod="b"} 0x150
relaypool_router_requests_total{,pod="a",call="quote",outcome="ok"} 0+60x150
relaypool_router_requests_total{,pod="a",call="quote",outcome="no_route"} 0+30x150
relaypool_router_requests_total{,pod="a",call="quote",outcome="timeout"} 0+1x150
relaypool_router_hostile_total{,pod="a",what="program"} 1x150
relaypool_swaps_settled_total{,pod="a",outcome="executed"} 0+30x150
relaypool_swaps_settled_total{,pod="a",outcome="refunded"} 0+1x150
`

// sicknesses are what is otherwise in each fleet that an alert is for, and in
// those that look like it and are none.
type sickness struct {
	// series replace those of the healthy fleet with the same labels.
	series string
	// fires are the alerts whose expressions then hold.
	fires []string
}

func sicknesses() map[string]sickness {
	return map[string]sickness{
		"nothing is wrong":          {"", nil},
		"work waits":                {`relaypool_backlog_oldest_age_seconds{,pod="a"} 2x100 61x50`, []string{"BacklogOld"}},
		"payers have nothing":       {`relaypool_held_submissions{,pod="a",reason="fee_payer_empty"} 0x100 1x50`, []string{"WorkHeld"}},
		"a swap is late":            {`relaypool_swaps_overdue{,pod="a"} 0x100 1x50`, []string{"SwapOverdue"}},
		"the relay fails by itself": {`relaypool_submissions_total{,pod="a",kind="transfer",outcome="internal"} 0x120 0+1x30`, []string{"RelayFault"}},
		"a step is given up":        {`relaypool_attempts_total{,pod="a",event="panic"} 0x140 1x10`, []string{"RelayFault"}},
		"a process died":            {`relaypool_leases_total{,pod="a",event="reaped"} 2x140 3x10`, []string{"ProcessDied"}},
		"no rows are deleted":       {`relaypool_upkeep_runs_total{,pod="b",job="retention",outcome="done"} 5x150`, []string{"RetentionBehind"}},
		"every payer is dry": {`relaypool_fee_payer_usable{,pod="a",payer="p"} 0x150
relaypool_fee_payer_usable{,pod="b",payer="p"} 0x150
relaypool_fee_payer_usable{,pod="a",payer="q"} 0x150`, []string{"PayersDry", "PayerDry"}},
		"one payer is dry":              {`relaypool_fee_payer_usable{,pod="a",payer="q"} 0x150`, []string{"PayerDry"}},
		"one pod believes that one is":  {`relaypool_fee_payer_usable{,pod="b",payer="p"} 0x150`, nil},
		"a payer is nearly empty":       {`relaypool_fee_payer_balance_lamports{,pod="a",payer="p"} 100000000x150`, []string{"PayerLow"}},
		"one pod cannot read a balance": {`relaypool_fee_payer_balance_age_seconds{,pod="b",payer="p"} 900x150`, nil},
		"no pod can": {`relaypool_fee_payer_balance_age_seconds{,pod="a",payer="p"} 900x150
relaypool_fee_payer_balance_age_seconds{,pod="b",payer="p"} 900x150`, []string{"BalancesOld"}},
		"somebody else signed":    {`relaypool_ledger_unknown_signatures{,pod="a"} 1x130 2x20`, []string{"UnknownSignature"}},
		"lamports are missing":    {`relaypool_ledger_difference_lamports{,pod="a",payer="p"} -1x150`, []string{"LedgerDifference"}},
		"history is short":        {`relaypool_ledger_gaps{,pod="a",payer="p"} 1x150`, []string{"LedgerGap"}},
		"the ledger is behind":    {`relaypool_ledger_unreconciled_age_seconds{,pod="a",payer="p"} 1300x150`, []string{"LedgerBehind"}},
		"a cap is nearly reached": {`relaypool_spend_cap_left_lamports{,pod="a",cap="day"} 19x150`, []string{"SpendCapNear"}},
		"no endpoint answers": {`relaypool_rpc_endpoint_up{,pod="a",endpoint="x"} 0x150
relaypool_rpc_endpoint_up{,pod="b",endpoint="x"} 0x150
relaypool_rpc_endpoint_up{,pod="a",endpoint="y"} 0x150`, []string{"EndpointsDown", "EndpointDown"}},
		"one does not":               {`relaypool_rpc_endpoint_up{,pod="a",endpoint="y"} 0x150`, []string{"EndpointDown"}},
		"one pod does not reach one": {`relaypool_rpc_endpoint_up{,pod="a",endpoint="x"} 0x150`, nil},
		"one is behind for all": {`relaypool_rpc_endpoint_lag_slots{,pod="a",endpoint="x"} 400x150
relaypool_rpc_endpoint_lag_slots{,pod="b",endpoint="x"} 400x150`, []string{"EndpointLags"}},
		"the tree contradicts itself for one": {`relaypool_tree_self_check{,pod="b"} 0x150`, []string{"RootMismatch"}},
		"the list stands still":               {`relaypool_index_published_leaves{,pod="a"} 990x150`, []string{"IndexBehind"}},
		"transactions expire":                 {`relaypool_attempts_total{,pod="a",event="expired"} 0+7x150`, []string{"AttemptsExpire"}},
		"a fork died":                         {`relaypool_attempts_total{,pod="a",event="reopened"} 0x120 1x30`, []string{"ForkDied"}},
		"nobody tells anything":               {"*", []string{"Silent"}},
		"the router is left alone by all": {`relaypool_router_breaker_open{,pod="a"} 1x150
relaypool_router_breaker_open{,pod="b"} 1x150`, []string{"RouterAway"}},
		"and by one pod":     {`relaypool_router_breaker_open{,pod="a"} 1x150`, nil},
		"the router lies":    {`relaypool_router_hostile_total{,pod="a",what="program"} 1x140 2x10`, []string{"RouterHostile"}},
		"the router fails":   {`relaypool_router_requests_total{,pod="a",call="quote",outcome="timeout"} 0+20x150`, []string{"RouterFails"}},
		"swaps are refunded": {`relaypool_swaps_settled_total{,pod="a",outcome="refunded"} 0+10x150`, []string{"RefundsNearExecutions"}},
	}
}

// Each alert is raised by what it is for, and by nothing else; that of one fleet
// says nothing of another in the same namespace.
func TestAlertsHoldWhenTheyShould(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	raised := map[string]bool{}
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 100_000)
	for pool, list := range rules(t) {
		for _, r := range list {
			known[r.Alert] = true
		}
		for name, s := range sicknesses() {
			storage := promqltest.LoadedStorage(t, "load 1m\n"+fleet(pool, s.series)+fleet("another", "*"))
			var fires []string
			for _, r := range list {
				query, err := engine.NewInstantQuery(t.Context(), storage, nil, r.Expr, time.Unix(0, 0).Add(150*time.Minute))
				if err != nil {
					t.Fatalf("%s: %v", r.Alert, err)
				}
				result := query.Exec(t.Context())
				if vector, err := result.Vector(); err != nil {
					t.Errorf("%s: %v", r.Alert, err)
				} else if len(vector) > 0 {
					fires = append(fires, r.Alert)
					raised[r.Alert] = true
				}
				query.Close()
			}
			want := wanted(s.fires, list)
			slices.Sort(fires)
			if !slices.Equal(fires, want) {
				t.Errorf("%s, %s: %v fire, want %v", pool, name, fires, want)
			}
		}
	}
	for alert := range maps.Keys(known) {
		if !raised[alert] {
			t.Errorf("%s is raised by none of the sicknesses: add one", alert)
		}
	}
}

// wanted are the alerts that fire, of those that the fleet has.
func wanted(names []string, list []rulefmt.Rule) (want []string) {
	for _, name := range names {
		if slices.ContainsFunc(list, func(r rulefmt.Rule) bool { return r.Alert == "Relaypool"+name }) {
			want = append(want, "Relaypool"+name)
		}
	}
	slices.Sort(want)
	return want
}

var series = regexp.MustCompile(`(?m)^([a-z_]+)\{(,?[^}]*)\} (.*)$`)

// fleet gives the series of a RelayPool: the healthy ones with those of the
// sickness in their places; * is none at all.
func fleet(pool, sick string) string {
	if sick == "*" {
		return ""
	}
	labels := fmt.Sprintf(`namespace="pools",pool=%q`, pool)
	all := map[string]string{}
	for _, text := range []string{healthy, sick} {
		for _, s := range series.FindAllStringSubmatch(text, -1) {
			all["  "+s[1]+"{"+labels+s[2]+"}"] = s[3]
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s %s\n", name, all[name])
	}
	return b.String()
}
