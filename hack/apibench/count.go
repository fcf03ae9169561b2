package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/relaypool/relaypool/hack/throughput/gauge"
)

// calls are those to the API server: writes change something or try to.
type calls struct{ reads, writes float64 }

func (c calls) per(n float64) calls { return calls{c.reads / n, c.writes / n} }

// asked are the calls that the operator's client counted.
func asked(m gauge.Metrics) calls {
	const name = "rest_client_requests_total"
	reads := m.Sum(name, `method="GET"`)
	return calls{reads, m.Sum(name) - reads}
}

// kindOfCall is a verb and what it is for, such as "GET secrets".
type kindOfCall string

// share is how often a kind of call was made for each RelayPool.
type share struct {
	kind kindOfCall
	each float64
}

// ofFleets are the resources that the operator has to do with.
func ofFleets() []string {
	return []string{
		"relaypools", "deployments", "configmaps", "services", "serviceaccounts", "poddisruptionbudgets", "horizontalpodautoscalers",
		"networkpolicies", "secrets", "events", "jobs", "podmonitors", "prometheusrules", "scaledobjects",
	}
}

// byStandIns are calls that the operator never makes, and the bench does.
func byStandIns() []kindOfCall { return []kindOfCall{"POST relaypools", "PUT deployments/status"} }

// byKind says which calls they were, by what the API server counted, for n
// RelayPools, the most frequent first. Lists and watches, of which there is one a
// kind, are left out.
func byKind(m gauge.Metrics, n float64) []share {
	count := map[kindOfCall]float64{}
	for series, v := range m {
		name, with, _ := strings.Cut(series, "{")
		if name != "apiserver_request_total" || v == 0 {
			continue
		}
		verb, resource := label(with, "verb"), label(with, "resource")
		if !slices.Contains(ofFleets(), resource) || verb == "WATCH" || verb == "LIST" {
			continue
		}
		if sub := label(with, "subresource"); sub != "" {
			resource += "/" + sub
		}
		count[kindOfCall(verb+" "+resource)] += v
	}
	for _, kind := range byStandIns() {
		delete(count, kind)
	}
	list := make([]share, 0, len(count))
	for kind, v := range count {
		list = append(list, share{kind, v / n})
	}
	slices.SortFunc(list, func(a, b share) int { return cmp.Or(cmp.Compare(b.each, a.each), cmp.Compare(a.kind, b.kind)) })
	return list
}

// label is a label's value in a series as a page writes it.
func label(series, name string) string {
	_, rest, _ := strings.Cut(series, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

func sum(stats map[string]uint64) (n uint64) {
	for _, of := range stats {
		n += of
	}
	return n
}
