package monitoring_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// use is a metric in a query.
type use struct {
	metric metric
	// series is the name in the query: for a histogram the name of one of its series.
	series string
	// matchers are the matchers of the selector, without the one for the name.
	matchers []*labels.Matcher
}

// check parses a query and returns its uses of metrics, and all faults: unknown
// metrics, labels and types, and functions that do not fit them.
func (c catalogue) check(expr string) (uses []use, faults []string) {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return nil, []string{err.Error()}
	}
	k := promqlChecker{catalogue: c}
	k.groupings(parsed)
	parser.Inspect(parsed, k.visit)
	return k.uses, k.faults
}

type promqlChecker struct {
	catalogue catalogue
	uses      []use
	faults    []string
}

func (k *promqlChecker) fault(format string, args ...any) {
	k.faults = append(k.faults, fmt.Sprintf(format, args...))
}

// find returns the metric of a series' name.
func (c catalogue) find(series string) (m metric, suffix string, ok bool) {
	if m, ok := c[series]; ok {
		return m, "", m.kind != histogram
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if name, cut := strings.CutSuffix(series, suffix); cut {
			if m, ok := c[name]; ok && m.kind == histogram {
				return m, suffix, true
			}
		}
	}
	return metric{}, "", false
}

var (
	counterFunctions = []string{"rate", "increase", "irate"}
	gaugeFunctions   = []string{"deriv", "delta", "predict_linear"}
)

func (k *promqlChecker) visit(node parser.Node, _ []parser.Node) error {
	switch n := node.(type) {
	case *parser.VectorSelector:
		k.selector(n)
	case *parser.Call:
		switch {
		case slices.Contains(counterFunctions, n.Func.Name), slices.Contains(gaugeFunctions, n.Func.Name):
			k.overTime(n)
		case n.Func.Name == "histogram_quantile":
			k.quantile(n)
		}
	case *parser.BinaryExpr:
		if m := n.VectorMatching; m != nil && m.On {
			available := k.labelsOf(n.LHS)
			for _, l := range m.MatchingLabels {
				if !slices.Contains(available, l) {
					k.fault("on (%s): its left side has no such label", l)
				}
			}
		}
	}
	return nil
}

func (k *promqlChecker) selector(s *parser.VectorSelector) {
	m, suffix, ok := k.catalogue.find(s.Name)
	if !ok {
		k.fault("no metric is named %q", s.Name)
		return
	}
	found := use{metric: m, series: s.Name}
	own := sampleLabels(m, suffix)
	for _, matcher := range s.LabelMatchers {
		if matcher.Name == model.MetricNameLabel {
			continue
		}
		found.matchers = append(found.matchers, matcher)
		if !slices.Contains(own, matcher.Name) {
			k.fault("%s has no label %s", s.Name, matcher.Name)
		}
	}
	k.uses = append(k.uses, found)
}

// sampleLabels returns the labels that a metric's samples have after a scrape.
func sampleLabels(m metric, suffix string) []string {
	all := append(slices.Clone(m.labels), targetLabels()...)
	if suffix == "_bucket" {
		all = append(all, "le")
	}
	return all
}

// overTime checks that functions of counters and of gauges are applied to their kind.
func (k *promqlChecker) overTime(call *parser.Call) {
	parser.Inspect(call.Args[0], func(node parser.Node, _ []parser.Node) error {
		s, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		m, suffix, known := k.catalogue.find(s.Name)
		isCounter := m.kind == counter || suffix != ""
		if known && isCounter != slices.Contains(counterFunctions, call.Func.Name) {
			k.fault("%s of %s, which is a %s", call.Func.Name, s.Name, m.kind)
		}
		return nil
	})
}

// quantile requires buckets, and that the label le is kept.
func (k *promqlChecker) quantile(call *parser.Call) {
	parser.Inspect(call.Args[1], func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok && !strings.HasSuffix(s.Name, "_bucket") {
			k.fault("histogram_quantile of %s, which has no buckets", s.Name)
		}
		return nil
	})
	if !slices.Contains(k.labelsOf(call.Args[1]), "le") {
		k.fault("histogram_quantile of an expression without the label le")
	}
}

// groupings checks that the labels kept by aggregations exist.
func (k *promqlChecker) groupings(expr parser.Expr) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		a, ok := node.(*parser.AggregateExpr)
		if !ok || a.Without {
			return nil
		}
		available := k.labelsOf(a.Expr)
		for _, l := range a.Grouping {
			if !slices.Contains(available, l) {
				k.fault("%s by (%s): no aggregated series has this label", a.Op, l)
			}
		}
		return nil
	})
}

// labelsOf returns the labels that an expression's result can have.
func (k *promqlChecker) labelsOf(expr parser.Expr) []string {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		m, suffix, _ := k.catalogue.find(e.Name)
		return sampleLabels(m, suffix)
	case *parser.AggregateExpr:
		if !e.Without {
			return e.Grouping
		}
		kept := slices.Clone(k.labelsOf(e.Expr))
		return slices.DeleteFunc(kept, func(l string) bool { return slices.Contains(e.Grouping, l) })
	case *parser.BinaryExpr:
		all := slices.Clone(k.labelsOf(e.LHS))
		if e.Op == parser.LOR || e.LHS.Type() == parser.ValueTypeScalar {
			all = append(all, k.labelsOf(e.RHS)...)
		}
		return all
	case *parser.Call:
		var all []string
		for _, arg := range e.Args {
			all = append(all, k.labelsOf(arg)...)
		}
		if e.Func.Name == "label_replace" {
			all = append(all, strings.Trim(e.Args[1].String(), `"`))
		}
		return all
	case *parser.MatrixSelector:
		return k.labelsOf(e.VectorSelector)
	case *parser.SubqueryExpr:
		return k.labelsOf(e.Expr)
	case *parser.ParenExpr:
		return k.labelsOf(e.Expr)
	case *parser.UnaryExpr:
		return k.labelsOf(e.Expr)
	}
	return nil
}

// labels parses an expression and returns the labels that its result can have.
func (c catalogue) labels(expr string) ([]string, error) {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return nil, err
	}
	k := promqlChecker{catalogue: c}
	return k.labelsOf(parsed), nil
}
