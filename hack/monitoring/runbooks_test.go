package monitoring_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/rulefmt"

	"github.com/relaypool/relaypool/relay/contract"
)

// runbooks is the folder with a page for each alert, from the checkout's root.
const runbooks = "docs/reference/alerts"

// headings are the headings of every page, in order.
var headings = []string{"For clients", "Confirm", "Do"}

// An alert links to its page: the page has to exist and be complete.
func TestEveryAlertHasItsPage(t *testing.T) {
	t.Parallel()
	fleet, own := everyAlert(t)
	var names []string
	for _, r := range append(fleet, own...) {
		names = append(names, r.Alert+".md")
		if want := "https://github.com/relaypool/relaypool/blob/v" + contract.Version + "/" + runbooks + "/" + r.Alert + ".md"; r.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		content, err := os.ReadFile(filepath.Join(root, runbooks, r.Alert+".md"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, fault := range pageFaults(r.Alert, string(content)) {
			t.Errorf("%s: %s", r.Alert, fault)
		}
	}
	files, err := os.ReadDir(filepath.Join(root, runbooks))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(names, f.Name()) {
			t.Errorf("%s: no alert has this page", f.Name())
		}
	}
}

var heading = regexp.MustCompile(`(?m)^(#+) (.*)$`)

// pageFaults lists the faults of an alert's page.
func pageFaults(alert, content string) (out []string) {
	found := heading.FindAllStringSubmatchIndex(content, -1)
	var titles []string
	for i, f := range found {
		title := content[f[4]:f[5]]
		titles = append(titles, title)
		end := len(content)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		if words := len(strings.Fields(content[f[1]:end])); words < 1 {
			out = append(out, "says nothing under "+title)
		}
	}
	if want := append([]string{alert}, headings...); !slices.Equal(titles, want) {
		out = append(out, "has the headings "+strings.Join(titles, ", ")+", want "+strings.Join(want, ", "))
	}
	return out
}

func TestPageFaults(t *testing.T) {
	t.Parallel()
	complete := "# A\n\nIt is.\n\n## For clients\n\nx\n\n## Confirm\n\nx\n\n## Do\n\nx\n"
	tests := map[string]struct {
		page string
		want []string
	}{
		"a complete page":           {complete, nil},
		"an empty part":             {strings.Replace(complete, "## Do\n\nx", "## Do\n", 1), []string{"says nothing under Do"}},
		"the page of another alert": {strings.Replace(complete, "# A", "# B", 1), []string{"has the headings B, For clients, Confirm, Do, want A, For clients, Confirm, Do"}},
		"a page without a part":     {strings.Replace(complete, "## Confirm\n\nx\n\n", "", 1), []string{"has the headings A, For clients, Do, want A, For clients, Confirm, Do"}},
		"a page without a cause":    {strings.Replace(complete, "It is.", "", 1), []string{"says nothing under A"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, pageFaults("A", tc.page)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// Readers choose from this list the alerts that page them.
func TestEveryAlertIsListedOnce(t *testing.T) {
	t.Parallel()
	fleet, own := everyAlert(t)
	content, err := os.ReadFile(filepath.Join(root, "docs/reference/alerts.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(content), "\n## ")[1:]
	if len(sections) != 3 {
		t.Fatalf("%d sections, want 3: critical and warning alerts of fleets, alerts of the operator", len(sections))
	}
	for i, want := range [][]string{listed(fleet, "critical"), listed(fleet, "warning"), listed(own, "warning")} {
		title, lines, _ := strings.Cut(strings.TrimSpace(sections[i]), "\n\n")
		if diff := cmp.Diff(want, strings.Split(lines, "\n")); diff != "" {
			t.Errorf("docs/reference/alerts.md, %s (-want +got):\n%s", title, diff)
		}
	}
}

// listed returns the lines of a list of alerts, each with its rule's for duration.
func listed(rules []rulefmt.Rule, severity string) (lines []string) {
	for i := range rules {
		if r := &rules[i]; r.Labels["severity"] == severity {
			pending := "0"
			if r.For != 0 {
				pending = r.For.String()
			}
			lines = append(lines, "- ["+r.Alert+"](alerts/"+r.Alert+".md) "+pending)
		}
	}
	return lines
}
