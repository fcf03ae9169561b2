package monitoring_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// The files with PrometheusRules: the objects that the operator makes for RelayPools, and those
// installed with the operator.
const (
	fleetFiles   = root + "/controllers/internal/build/testdata/*.golden.yaml"
	operatorFile = root + "/config/prometheus/rules.yaml"
)

// ruleSet is the rules of one PrometheusRule.
type ruleSet struct {
	// File has the PrometheusRule. Namespace and Pool are the PrometheusRule's namespace and name:
	// a fleet's rules have the names of its RelayPool.
	File, Namespace, Pool string
	// Content is a rule file for Prometheus.
	Content []byte
	Rules   []rulefmt.Rule
}

// fleets reads the rules of each RelayPool for which the operator's builders have a golden
// file.
func fleets(t *testing.T) (all []ruleSet) {
	t.Helper()
	files, err := filepath.Glob(fleetFiles)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		all = append(all, readRules(t, file)...)
	}
	if len(all) == 0 {
		t.Fatalf("no PrometheusRule in %s, expected one of each RelayPool", fleetFiles)
	}
	return all
}

// operator reads the rules about the operator.
func operator(t *testing.T) ruleSet {
	t.Helper()
	sets := readRules(t, operatorFile)
	if len(sets) != 1 {
		t.Fatalf("%s has %d PrometheusRules, expected one", operatorFile, len(sets))
	}
	return sets[0]
}

// everyAlert returns each alert of the fleets once, in order, and the operator's.
func everyAlert(t *testing.T) (fleet, own []rulefmt.Rule) {
	t.Helper()
	seen := map[string]bool{}
	for _, set := range fleets(t) {
		for _, r := range set.Rules {
			if !seen[r.Alert] {
				seen[r.Alert] = true
				fleet = append(fleet, r)
			}
		}
	}
	return fleet, operator(t).Rules
}

// object is one object of a file.
type object struct {
	Kind     string
	Metadata struct{ Namespace, Name string }
	Spec     yaml.Node
}

// objects returns the objects of a kind.
func objects(t *testing.T, file, kind string) (found []object) {
	t.Helper()
	content, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var o object
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatalf("read %s: %v", file, err)
		}
		if o.Kind == kind {
			found = append(found, o)
		}
	}
}

// readRules reads a file's PrometheusRules as Prometheus does: strictly, with their
// expressions and templates.
func readRules(t *testing.T, file string) (sets []ruleSet) {
	t.Helper()
	for _, o := range objects(t, file, "PrometheusRule") {
		content, err := yaml.Marshal(&o.Spec)
		if err != nil {
			t.Fatalf("read %s: %v", file, err)
		}
		groups, problems := rulefmt.Parse(content, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		if len(problems) > 0 || len(groups.Groups) != 1 {
			t.Fatalf("read %s: %v, expected one group of rules", file, problems)
		}
		sets = append(sets, ruleSet{file, o.Metadata.Namespace, o.Metadata.Name, content, groups.Groups[0].Rules})
	}
	return sets
}
