package alerts

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/prometheus/prometheus/model/rulefmt"
)

// The page that lists the alerts, and the folder with one page for each, from the
// checkout's root.
const (
	Page  = "docs/alerts.md"
	Pages = "docs/alerts"
)

//go:embed introduction.md
var introduction string

// List writes what Page has: every alert with what it means, how long it lasts
// before it fires, and its condition.
func List(root string) ([]byte, error) {
	fleet, operator, err := Every(root)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(introduction)
	section := func(title, intro string, rules []rulefmt.Rule, severity string) error {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| alert | says | for | condition |\n| --- | --- | --- | --- |\n", title, intro)
		for i := range rules {
			r := &rules[i]
			if r.Labels["severity"] != severity {
				continue
			}
			says, err := firstSentence(root, r.Alert)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "| [%s](alerts/%s.md) | %s | %s | `%s` |\n", r.Alert, r.Alert, says, lasting(r), strings.ReplaceAll(Condition(r), "|", `\|`))
		}
		return nil
	}
	b.WriteString("\n## Of a fleet\n")
	if err := section("Wake somebody", "Severity `critical`.", fleet, "critical"); err != nil {
		return nil, err
	}
	if err := section("In the morning", "Severity `warning`.", fleet, "warning"); err != nil {
		return nil, err
	}
	b.WriteString("\n## Of the operator\n")
	if err := section("What only the operator sees", "Severity `warning`: fleets go on without their operator.", operator, "warning"); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func lasting(r *rulefmt.Rule) string {
	if r.For == 0 {
		return "0"
	}
	return r.For.String()
}

var (
	link     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	sentence = regexp.MustCompile(`^.*?[.:](?: |$)`)
)

// firstSentence is what an alert's own page begins with.
func firstSentence(root, alert string) (string, error) {
	content, err := os.ReadFile(filepath.Join(root, Pages, alert+".md"))
	if err != nil {
		return "", fmt.Errorf("read the page of an alert: %w", err)
	}
	_, rest, _ := strings.Cut(string(content), "\n\n")
	paragraph, _, _ := strings.Cut(rest, "\n\n")
	paragraph = link.ReplaceAllString(strings.ReplaceAll(paragraph, "\n", " "), "$1")
	first := strings.TrimRight(sentence.FindString(paragraph+" "), " .:")
	if first == "" {
		return "", fmt.Errorf("the page of %s has no sentence after its heading, expected one that says what has happened", alert)
	}
	return first, nil
}
