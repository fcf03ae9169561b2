package alerts

import (
	"bytes"
	_ "embed"
	"fmt"

	"github.com/prometheus/prometheus/model/rulefmt"
)

// The page that lists the alerts, and the folder with one page for each, from the
// checkout's root.
const (
	Page  = "docs/reference/alerts.md"
	Pages = "docs/reference/alerts"
)

//go:embed introduction.md
var introduction string

// List writes what Page has: every alert, and how long it lasts before it fires.
func List(root string) ([]byte, error) {
	fleet, operator, err := Every(root)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(introduction)
	section := func(title string, rules []rulefmt.Rule, severity string) {
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		for i := range rules {
			r := &rules[i]
			if r.Labels["severity"] != severity {
				continue
			}
			fmt.Fprintf(&b, "- [%s](alerts/%s.md) %s\n", r.Alert, r.Alert, lasting(r))
		}
	}
	section("Of a fleet, critical", fleet, "critical")
	section("Of a fleet, warning", fleet, "warning")
	section("Of the operator, warning: fleets go on without it", operator, "warning")
	return b.Bytes(), nil
}

func lasting(r *rulefmt.Rule) string {
	if r.For == 0 {
		return "0"
	}
	return r.For.String()
}
