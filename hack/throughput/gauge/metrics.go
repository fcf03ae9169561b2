package gauge

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Metrics are the samples of several relays' pages, added up, by name and labels
// as a page writes them.
type Metrics map[string]float64

// ReadMetrics adds pages up.
func ReadMetrics(pages [][]byte) Metrics {
	m := make(Metrics)
	for _, page := range pages {
		for line := range bytes.Lines(page) {
			text := strings.TrimSpace(string(line))
			at := strings.LastIndexByte(text, ' ')
			if at < 0 || text[0] == '#' {
				continue
			}
			if v, err := strconv.ParseFloat(text[at+1:], 64); err == nil {
				m[text[:at]] += v
			}
		}
	}
	return m
}

// Sum adds the samples of a name whose labels contain every text.
func (m Metrics) Sum(name string, labels ...string) (sum float64) {
	for series, v := range m {
		of, with, _ := strings.Cut(series, "{")
		if of == name && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(with, l) }) {
			sum += v
		}
	}
	return sum
}

// Percentile is the value at or below which p percent of a sorted list lie, p
// from 0 to 100; 0 for an empty list.
func Percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(p/100*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Median is the middle of a list, which it sorts; 0 for an empty one.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
