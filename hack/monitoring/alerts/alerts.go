// Package alerts reads the project's alerting rules, those of a fleet as the
// operator makes them and those of the operator itself, and writes the page that
// lists them. Its tests hold them against Prometheus' own promtool.
package alerts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// The files with PrometheusRules, from the checkout's root: the objects that the
// operator makes of RelayPools, and what is installed beside the operator.
const (
	goldens       = "controllers/internal/build/testdata/*.golden.yaml"
	operatorRules = "config/prometheus/rules.yaml"
)

// Set is the rules of one PrometheusRule.
type Set struct {
	// File has the PrometheusRule, Namespace and Pool are those of its object: of a
	// fleet's rules the RelayPool that they are for.
	File, Namespace, Pool string
	// Content is a rule file for Prometheus.
	Content []byte
	Rules   []rulefmt.Rule
}

// Fleets reads the rules of each RelayPool that the operator's builders have a
// golden file of.
func Fleets(root string) ([]Set, error) {
	files, err := filepath.Glob(filepath.Join(root, goldens))
	if err != nil {
		return nil, err
	}
	var all []Set
	for _, file := range files {
		sets, err := read(file)
		if err != nil {
			return nil, err
		}
		all = append(all, sets...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no PrometheusRule in %s below %s, expected one of each RelayPool", goldens, root)
	}
	return all, nil
}

// Operator reads the rules about the operator.
func Operator(root string) (Set, error) {
	sets, err := read(filepath.Join(root, operatorRules))
	if err != nil {
		return Set{}, err
	}
	if len(sets) != 1 {
		return Set{}, fmt.Errorf("%s has %d PrometheusRules, expected one", operatorRules, len(sets))
	}
	return sets[0], nil
}

// read gives the PrometheusRules among a file's objects.
func read(file string) (sets []Set, err error) {
	content, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, fmt.Errorf("read alerting rules: %w", err)
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var o struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
			Spec     yaml.Node
		}
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			return sets, nil
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if o.Kind != "PrometheusRule" {
			continue
		}
		set := Set{File: file, Namespace: o.Metadata.Namespace, Pool: o.Metadata.Name}
		if set.Content, err = yaml.Marshal(&o.Spec); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if set.Rules, err = parse(set.Content); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		sets = append(sets, set)
	}
}

// parse reads rules as Prometheus does: strictly, with their expressions and templates.
func parse(content []byte) ([]rulefmt.Rule, error) {
	groups, problems := rulefmt.Parse(content, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if len(groups.Groups) != 1 {
		return nil, fmt.Errorf("%d groups of rules, expected one", len(groups.Groups))
	}
	return groups.Groups[0].Rules, nil
}

// Every gives each alert of the fleets once, in their order, and then those of the
// operator.
func Every(root string) (fleet, operator []rulefmt.Rule, err error) {
	sets, err := Fleets(root)
	if err != nil {
		return nil, nil, err
	}
	own, err := Operator(root)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for i := range sets {
		for _, r := range sets[i].Rules {
			if !seen[r.Alert] {
				seen[r.Alert] = true
				fleet = append(fleet, r)
			}
		}
	}
	return fleet, own.Rules, nil
}
