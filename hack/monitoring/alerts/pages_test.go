package alerts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/monitoring/alerts"
	"github.com/relaypool/relaypool/relay/contract"
)

// parts are what somebody who was woken looks for, in their order.
var parts = []string{"For clients", "Confirm", "Do"}

// A page that is missing, or says half of it, is found here and not at night.
func TestEveryAlertHasItsPage(t *testing.T) {
	t.Parallel()
	fleet, own, err := alerts.Every(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range append(fleet, own...) {
		names = append(names, r.Alert+".md")
		if want := "https://github.com/relaypool/relaypool/blob/v" + contract.Version + "/" + alerts.Pages + "/" + r.Alert + ".md"; r.Annotations["runbook_url"] != want {
			t.Errorf("%s leads to %q, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		content, err := os.ReadFile(filepath.Join(root, alerts.Pages, r.Alert+".md"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, fault := range faults(r.Alert, string(content)) {
			t.Errorf("%s: %s", r.Alert, fault)
		}
	}
	files, err := os.ReadDir(filepath.Join(root, alerts.Pages))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(names, f.Name()) {
			t.Errorf("%s is the page of no alert", f.Name())
		}
	}
}

var heading = regexp.MustCompile(`(?m)^(#+) (.*)$`)

// faults says what a page lacks.
func faults(alert, content string) (out []string) {
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
	if want := append([]string{alert}, parts...); !slices.Equal(titles, want) {
		out = append(out, "has the headings "+strings.Join(titles, ", ")+", want "+strings.Join(want, ", "))
	}
	return out
}

func TestFaultsOfAPage(t *testing.T) {
	t.Parallel()
	whole := "# A\n\nIt is.\n\n## For clients\n\nx\n\n## Confirm\n\nx\n\n## Do\n\nx\n"
	tests := map[string]struct {
		page string
		want []string
	}{
		"a whole page":              {whole, nil},
		"a part without a word":     {strings.Replace(whole, "## Do\n\nx", "## Do\n", 1), []string{"says nothing under Do"}},
		"a page of another":         {strings.Replace(whole, "# A", "# B", 1), []string{"has the headings B, For clients, Confirm, Do, want A, For clients, Confirm, Do"}},
		"a page that lacks a part":  {strings.Replace(whole, "## Confirm\n\nx\n\n", "", 1), []string{"has the headings A, For clients, Do, want A, For clients, Confirm, Do"}},
		"a page that says no cause": {strings.Replace(whole, "It is.", "", 1), []string{"says nothing under A"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, faults("A", tc.page)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheListIsCurrent(t *testing.T) {
	t.Parallel()
	want, err := alerts.List(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, alerts.Page))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not current, run go generate in hack/monitoring (-want +got):\n%s", alerts.Page, diff)
	}
}
