package gauge

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Metrics are the sums of the samples of several relays' metric pages. The key is the name
// with its labels, as on a page.
type Metrics map[string]float64

// ReadMetrics sums the samples of the pages.
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

// Sum adds the samples of a name that have all the labels, such as way="in".
func (m Metrics) Sum(name string, labels ...string) (sum float64) {
	for series, v := range m {
		seriesName, seriesLabels, _ := strings.Cut(series, "{")
		if seriesName == name && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(seriesLabels, l) }) {
			sum += v
		}
	}
	return sum
}

// Percentile returns the value at or below which p percent (0 to 100) of a sorted list
// are; 0 for an empty list.
func Percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(p/100*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Median sorts a list and returns its median; 0 for an empty list.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
