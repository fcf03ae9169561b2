package picture

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/relaypool/relaypool/hack/monitoring/grafana"
)

// value tells a value in its unit, shortly.
func value(v float64, unit grafana.Unit) string {
	switch unit {
	case grafana.Seconds:
		return duration(v)
	case grafana.Share:
		return number(100*v) + " %"
	case grafana.Bytes:
		return number(v/(1<<20)) + " MiB"
	case grafana.PerSecond:
		return number(v) + "/s"
	case grafana.Hours:
		if v > 48 {
			return number(v/24) + " days"
		}
		return number(v) + " h"
	case grafana.SOL, grafana.SOLPerHour, grafana.Slots, grafana.Processors, grafana.Lamports:
		return number(v) + strings.TrimPrefix(string(unit), "suffix:")
	}
	return number(v)
}

// tick is a value at an axis, without a unit that is long: the title has it.
func tick(v float64, unit grafana.Unit) string {
	if _, long := longUnit(unit); long {
		return number(v)
	}
	return value(v, unit)
}

// longUnit is what values of a unit have behind them.
func longUnit(unit grafana.Unit) (string, bool) { return strings.CutPrefix(string(unit), "suffix: ") }

func duration(v float64) string {
	switch {
	case v == 0:
		return "0"
	case math.Abs(v) < 1:
		return number(1000*v) + " ms"
	case math.Abs(v) < 600:
		return number(v) + " s"
	}
	return number(v/60) + " min"
}

// number has three digits that count, and no more zeros than it needs.
func number(v float64) string {
	switch {
	case math.Abs(v) >= 1e7:
		return fmt.Sprintf("%.3g", v)
	case math.Abs(v) >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	}
	return strconv.FormatFloat(round(v), 'f', -1, 64)
}

// round keeps three digits.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	power := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*power) / power
}

var inLegend = regexp.MustCompile(`\{\{(\w+)\}\} ?`)

// name fills a legend in. The pool is the same for all that is drawn, and is left
// out; a payer's address is shortened, and so is a pod's name, to what differs.
func name(legend string, labels map[string]string) string {
	text := inLegend.ReplaceAllStringFunc(legend, func(m string) string {
		key := inLegend.FindStringSubmatch(m)[1]
		v := labels[key]
		switch {
		case key == "pool":
			return ""
		case key == "payer" && len(v) > 8:
			v = v[:4] + "…" + v[len(v)-3:]
		case key == "pod":
			v = strings.TrimPrefix(v, labels["pool"]+"-")
		}
		return v + " "
	})
	if text = strings.TrimSpace(text); text == "" {
		return labels["pool"]
	}
	return text
}

// row is a table's line: the values of labels, in the order of their names.
func row(labels map[string]string) string {
	var keys []string
	for k := range labels {
		if !slices.Contains([]string{"namespace", "pool", "__name__"}, k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	var values []string
	for _, k := range keys {
		v := labels[k]
		if k == "pod" {
			v = strings.TrimPrefix(v, labels["pool"]+"-")
		}
		values = append(values, v)
	}
	return strings.Join(values, "   ")
}

// nice is the least of 1, 2 and 5 times a power of ten that is not below v.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= v*(1-1e-9) {
			return factor * power
		}
	}
	return 10 * power
}
