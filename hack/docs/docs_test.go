package docs

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/postgres"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/refusal"
)

const root = "../.."

// documents reads the documents in the root, in docs/, of the chart and of the local chain.
// Keys are paths from the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	tree, docs := os.DirFS(root), map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "docs/*/*/*.md", "hack/localnet/README.md", "charts/relaypool/README.md"} {
		paths, err := fs.Glob(tree, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			docs[path] = read(t, path)
		}
	}
	for _, needed := range []string{"docs/README.md", "docs/engineering/architecture.md"} {
		if docs[needed] == "" {
			t.Fatalf("%s is missing: the other tests would check nothing", needed)
		}
	}
	return docs
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := fs.ReadFile(os.DirFS(root), path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestLinksAreNotBroken(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	for path, text := range docs {
		for _, target := range links(text) {
			if fault := linkError(path, target, docs); fault != "" {
				t.Errorf("%s links to %s: %s", path, target, fault)
			}
		}
	}
}

// Every page has to be reachable from the index, because nobody maintains an unreachable page.
func TestEveryPageIsReachable(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	reached, next := map[string]bool{}, []string{"docs/README.md"}
	for len(next) > 0 {
		path := next[0]
		next = next[1:]
		if reached[path] {
			continue
		}
		reached[path] = true
		for _, target := range links(docs[path]) {
			file, _, _ := strings.Cut(target, "#")
			if to := filepath.Join(filepath.Dir(path), file); docs[to] != "" {
				next = append(next, to)
			}
		}
	}
	for path := range docs {
		if strings.HasPrefix(path, "docs/") && !reached[path] {
			t.Errorf("no link leads from docs/README.md to %s", path)
		}
	}
}

// links returns the targets of a document's links, except for those in code.
func links(text string) []string {
	var out []string
	for _, m := range linked.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
		out = append(out, m[1])
	}
	return out
}

var (
	code    = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	linked  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// linkError returns why a link is broken, or an empty text. It does not check links out of the
// tree, because the tests use no network.
func linkError(from, target string, docs map[string]string) string {
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return "it is not a URL"
	case u.Scheme == "http" || u.Scheme == "https":
		return ""
	case u.Scheme != "" || strings.HasPrefix(u.Path, "/"):
		return "expected a relative path or https"
	}
	to := from
	if u.Path != "" {
		to = filepath.Join(filepath.Dir(from), u.Path)
		if _, err := os.Stat(filepath.Join(root, to)); err != nil {
			return "there is no such file"
		}
	}
	if u.Fragment != "" && !slices.Contains(anchors(docs[to]), u.Fragment) {
		return "the page has no such heading"
	}
	return ""
}

// anchors returns the fragments of a document's headings on GitHub.
func anchors(text string) []string {
	var out []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		words := dropped.ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(words, " ", "-"))
	}
	return out
}

func TestLinkError(t *testing.T) {
	t.Parallel()
	docs := map[string]string{"docs/README.md": "# Hello, World's `code`\n## Two words\n"}
	tests := map[string]struct{ target, want string }{
		"another page":               {"engineering/decisions.md", ""},
		"a heading of this page":     {"#two-words", ""},
		"a heading with punctuation": {"README.md#hello-worlds-code", ""},
		"a page out of the tree":     {"https://example.org/x", ""},
		"a missing page":             {"nowhere.md", "there is no such file"},
		"a missing heading":          {"#three-words", "the page has no such heading"},
		"an absolute path":           {"/etc/hosts", "expected a relative path or https"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := linkError("docs/README.md", tt.target, docs); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.target, got, tt.want)
			}
		})
	}
}

func TestNamesExist(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	tests := map[string]struct {
		// The first group of pattern is the name.
		pattern string
		exists  func(name string) bool
	}{
		"environment variables": {`(RELAYPOOL_[A-Z0-9_]+)`, among(slices.Concat(contract.EnvironmentVariables(), contract.OperatorEnvironmentVariables(), []string{postgres.TestURLVariable}))},
		"metrics and samples": {`\b(relaypool_[a-z0-9_]+)`, func(name string) bool {
			_, err := os.Stat(filepath.Join(root, "config", "samples", name+".yaml"))
			return err == nil || isMetric(name)
		}},
		"make targets": {"`make ([a-z0-9-]+)", among(targets(t))},
		"tests":        {`\b((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)\b`, testNames(t)},
		"paths": {"`((?:api|controllers|config|relay|hack|docs|\\.ci)/[A-Za-z0-9_./-]+)`", func(path string) bool {
			path = strings.ReplaceAll(path, "...", "")
			_, err := os.Stat(filepath.Join(root, path))
			return err == nil || strings.Contains(path, "NNN_")
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := 0
			for path, text := range docs {
				for _, m := range regexp.MustCompile(tt.pattern).FindAllStringSubmatch(text, -1) {
					found++
					if !tt.exists(m[1]) {
						t.Errorf("%s names %s, which does not exist", path, m[1])
					}
				}
			}
			if found == 0 {
				t.Error("no document has such a name: nothing was checked")
			}
		})
	}
}

func among(names []string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

// isMetric reports whether name is a metric or a series of a histogram.
func isMetric(name string) bool {
	return slices.ContainsFunc(slices.Concat(contract.Metrics(), contract.OperatorMetrics()), func(m contract.Metric) bool {
		return name == m.Name || slices.Contains([]string{"_bucket", "_sum", "_count"}, strings.TrimPrefix(name, m.Name))
	})
}

// testNames returns a function that reports whether a name is a test function of any module.
func testNames(t *testing.T) func(string) bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Za-z0-9]*)\(`).FindAllSubmatch(source, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(name string) bool { return names[name] }
}

func targets(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):.*## `).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		out = append(out, m[1])
	}
	return out
}

func TestCodesMatchTheRelay(t *testing.T) {
	t.Parallel()
	want, got := map[string]int{}, map[string]int{}
	for _, c := range refusal.All() {
		want[string(c)] = c.HTTPStatus()
	}
	for _, row := range regexp.MustCompile("(?m)^- `([a-z0-9_]+)` \\((\\d{3})\\): \\S").FindAllStringSubmatch(read(t, "docs/reference/errors.md"), -1) {
		if _, found := got[row[1]]; found {
			t.Errorf("docs/reference/errors.md has %s twice", row[1])
		}
		got[row[1]], _ = strconv.Atoi(row[2]) // the pattern has three digits
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("codes and statuses (-relay/refusal +docs/reference/errors.md):\n%s", diff)
	}
}

func TestDrainTimingsMatchTheContract(t *testing.T) {
	t.Parallel()
	text := read(t, "docs/guides/relay.md")
	for phase, want := range map[string]time.Duration{
		"before SIGTERM": contract.PreStop, "HTTP": contract.HTTPShutdown, "queue": contract.QueueStop,
		"hand-over": contract.HandOver, "margin": contract.Margin, "grace period": contract.TerminationGrace,
	} {
		if row := fmt.Sprintf("| %s | %d |", phase, int(want.Seconds())); !strings.Contains(text, row) {
			t.Errorf("docs/guides/relay.md has no row %q, which relay/contract requires", row)
		}
	}
}

// The relay must write every log line that docs/reference/logs.md names.
func TestLogLinesAreWritten(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	err := fs.WalkDir(os.DirFS(root), "relay", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(filepath.Join(root, path))
		source.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("`([a-z][a-z]+ [^`]+)`").FindAllStringSubmatch(read(t, "docs/reference/logs.md"), -1)
	if len(lines) < 30 {
		t.Fatalf("docs/reference/logs.md names %d log lines, want at least 30", len(lines))
	}
	for _, m := range lines {
		if !strings.Contains(source.String(), `"`+m[1]) {
			t.Errorf("docs/reference/logs.md names the log line %q, which the relay does not write", m[1])
		}
	}
}
