package monitoring_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"go.yaml.in/yaml/v3"
)

// promtest is a file for promtool test rules.
type promtest struct {
	RuleFiles          []string `yaml:"rule_files"`
	EvaluationInterval string   `yaml:"evaluation_interval"`
	Tests              []group  `yaml:"tests"`
}

type group struct {
	Name        string        `yaml:"name"`
	Interval    string        `yaml:"interval"`
	InputSeries []input       `yaml:"input_series"`
	Alerts      []expectation `yaml:"alert_rule_test"`
}

type input struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type expectation struct {
	EvalTime string  `yaml:"eval_time"`
	Alert    string  `yaml:"alertname"`
	Alerts   []alert `yaml:"exp_alerts"`
}

type alert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func TestPromtoolAcceptsTheRules(t *testing.T) {
	t.Parallel()
	for _, set := range append(fleets(t), operator(t)) {
		runPromtool(t, "check", "rules", "--lint=all", "--lint-fatal", write(t, set.Pool+".yaml", set.Content))
	}
}

// Each alert fires on its cause, after its duration, and not when the cause is just too small. No
// other alert fires except those that have to accompany it. An alert of one fleet does not
// fire for another in the namespace.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	tried, triedOthers := map[string]bool{}, false
	for _, set := range fleets(t) {
		suite := newSuite(t, &set, "Relaypool", healthy)
		for name, tr := range trials() {
			// Fleets share most of their rules: each alert is tried with the first fleet that has it.
			if suite.rule(name) != nil && !tried[name] {
				tried[name] = true
				suite.add(t, name, &tr)
			}
		}
		if !triedOthers && suite.rule("RouterFails") != nil { // a fleet with swaps
			triedOthers = true
			for name, tr := range otherCauses() {
				for alert := range tr.fires {
					if short, _ := labelsOf(alert); suite.rule(short) == nil {
						t.Errorf("%s: %s has no alert %s, which should fire", name, set.File, short)
					}
				}
				suite.add(t, name, &tr)
			}
		}
		suite.run(t)
	}
	if !triedOthers {
		t.Error("no fleet has swaps, so the other causes were not tried")
	}
}

func TestAlertsOfTheOperatorFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	set := operator(t)
	suite := newSuite(t, &set, "RelaypoolOperator", healthyOperator)
	for name, tr := range operatorTrials() {
		suite.add(t, name, &tr)
	}
	for name, tr := range operatorOtherCauses() {
		suite.add(t, name, &tr)
	}
	suite.run(t)
}

func TestEveryAlertHasATrial(t *testing.T) {
	t.Parallel()
	fleet, own := everyAlert(t)
	for prefix, set := range map[string]struct {
		rules  []rulefmt.Rule
		trials map[string]trial
	}{"Relaypool": {fleet, trials()}, "RelaypoolOperator": {own, operatorTrials()}} {
		var names []string
		for _, r := range set.rules {
			name := strings.TrimPrefix(r.Alert, prefix)
			names = append(names, name)
			if tr := set.trials[name]; tr.faulty == "" || tr.justBelow == "" || !slices.ContainsFunc(slices.Collect(maps.Keys(tr.fires)), func(f string) bool { a, _, _ := strings.Cut(f, "{"); return a == name }) {
				t.Errorf("%s%s needs a trial with a fleet in which it fires and a fleet in which it just does not fire", prefix, name)
			}
		}
		for name := range set.trials {
			if !slices.Contains(names, name) {
				t.Errorf("there is a trial of %s%s, which is not an alert", prefix, name)
			}
		}
	}
}

func TestExpressionsUseExistingMetrics(t *testing.T) {
	t.Parallel()
	catalogue := loadMetrics(t)
	for _, set := range append(fleets(t), operator(t)) {
		for _, r := range set.Rules {
			uses, faults := catalogue.check(r.Expr)
			for _, f := range faults {
				t.Errorf("%s: %s: %s", set.Pool, r.Alert, f)
			}
			for _, u := range uses {
				if wanted := map[bool]source{true: ofOperator, false: ofRelay}[set.Pool == "relaypool-operator"]; u.metric.source != wanted {
					t.Errorf("%s uses %s, a metric of %s, want only those of %s", r.Alert, u.series, u.metric.source, wanted)
				}
			}
		}
	}
}

// suite gathers the trials of one set of rules.
type suite struct {
	set     *ruleSet
	prefix  string
	healthy string
	// short trials are evaluated every minute, long trials, which take hours, every five.
	short, long promtest
}

func newSuite(t *testing.T, set *ruleSet, prefix, healthy string) *suite {
	t.Helper()
	file := []string{write(t, "rules.yaml", set.Content)}
	return &suite{
		set: set, prefix: prefix, healthy: healthy,
		short: promtest{RuleFiles: file, EvaluationInterval: "1m"}, long: promtest{RuleFiles: file, EvaluationInterval: "5m"},
	}
}

func (s *suite) rule(name string) *rulefmt.Rule {
	for i := range s.set.Rules {
		if s.set.Rules[i].Alert == s.prefix+name {
			return &s.set.Rules[i]
		}
	}
	return nil
}

func (s *suite) add(t *testing.T, name string, tr *trial) {
	t.Helper()
	at := 40 * time.Minute
	if tr.at != "" {
		var err error
		if at, err = time.ParseDuration(tr.at); err != nil {
			t.Fatal(err)
		}
	}
	s.group(t, name, tr.faulty, at, tr.fires)
	if tr.justBelow != "" {
		s.group(t, name+", just below", tr.justBelow, at, tr.belowFires)
	}
}

// group adds the results that promtool has to find: each firing alert with all its labels and
// texts, no other alert, and no alert before its duration has passed.
func (s *suite) group(t *testing.T, name, series string, at time.Duration, fires map[string]string) {
	t.Helper()
	g := group{Name: name, Interval: "1m", InputSeries: s.series(series, at)}
	test, every := &s.short, time.Minute
	if at > 3*time.Hour {
		test, every = &s.long, 5*time.Minute
	}
	firing := map[string][]alert{}
	for pattern, value := range fires {
		short, labels := labelsOf(pattern)
		if r := s.rule(short); r != nil {
			firing[r.Alert] = append(firing[r.Alert], expected(r, labels, value))
		}
	}
	for i := range s.set.Rules {
		r := &s.set.Rules[i]
		g.Alerts = append(g.Alerts, expectation{model.Duration(at).String(), r.Alert, firing[r.Alert]})
		if early := time.Duration(r.For) - every; early >= 0 && len(firing[r.Alert]) > 0 {
			g.Alerts = append(g.Alerts, expectation{model.Duration(early).String(), r.Alert, nil})
		}
	}
	test.Tests = append(test.Tests, g)
}

// run tests the short and the long trials with promtool.
func (s *suite) run(t *testing.T) {
	t.Helper()
	for kind, test := range map[string]promtest{"short": s.short, "long": s.long} {
		if len(test.Tests) == 0 {
			continue
		}
		t.Run(s.set.Pool+", "+kind, func(t *testing.T) {
			t.Parallel()
			content, err := yaml.Marshal(test)
			if err != nil {
				t.Fatal(err)
			}
			runPromtool(t, "test", "rules", "--diff", write(t, "trials.yaml", content))
		})
	}
}

// labelsOf parses Alert{label=value,label=value}.
func labelsOf(what string) (name string, labels map[string]string) {
	name, rest, _ := strings.Cut(strings.TrimSuffix(what, "}"), "{")
	labels = map[string]string{}
	for _, pair := range strings.Split(rest, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			labels[key] = value
		}
	}
	return name, labels
}

// queried matches the part of an alert's text that comes from a query when the text is rendered.
var queried = regexp.MustCompile(`\{\{ with .* \| query \}\}.*\{\{ end \}\}`)

// expected returns an alert with its rendered texts.
func expected(r *rulefmt.Rule, labels map[string]string, value string) alert {
	a := alert{Labels: maps.Clone(r.Labels), Annotations: map[string]string{}}
	replacements := []string{"{{ $value | humanizeDuration }}", value}
	for name, v := range labels {
		a.Labels[name] = v
		replacements = append(replacements, "{{ $labels."+name+" }}", v)
	}
	for name, text := range r.Annotations {
		a.Annotations[name] = strings.NewReplacer(replacements...).Replace(queried.ReplaceAllString(text, value))
	}
	return a
}

// expansion matches the number of repetitions of a series' last value.
var expansion = regexp.MustCompile(`x(\d+)$`)

// trim cuts off values long after the tested time.
func trim(values string, at time.Duration) string {
	return expansion.ReplaceAllStringFunc(values, func(x string) string {
		n, err := strconv.Atoi(x[1:])
		if err != nil {
			return x
		}
		return fmt.Sprintf("x%d", min(n, int(at/time.Minute)+5))
	})
}

var seriesLine = regexp.MustCompile(`(?m)^([a-z_]+)\{(.*)\} (.*)$`)

// series returns the healthy series, of which faulty replaces some, and the series of a second
// healthy fleet. If faulty is *, it returns only the series of the second fleet.
func (s *suite) series(faulty string, at time.Duration) (all []input) {
	own := fmt.Sprintf("namespace=%q,pool=%q", s.set.Namespace, s.set.Pool)
	values := map[string]string{}
	add := func(text, labels string) {
		for _, m := range seriesLine.FindAllStringSubmatch(text, -1) {
			content := m[2]
			if strings.HasPrefix(content, ",") {
				content = labels + content
			}
			values[m[1]+"{"+content+"}"] = m[3]
		}
	}
	if faulty != "*" {
		add(s.healthy, own)
		add(faulty, own)
	}
	if s.prefix == "Relaypool" {
		add(s.healthy, fmt.Sprintf(`namespace=%q,pool="another"`, s.set.Namespace))
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, input{name, trim(values[name], at)})
	}
	return all
}
