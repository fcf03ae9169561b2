package docs

import (
	"os/exec"
	"strings"
	"testing"
)

// The limits of the documents' lengths. An addition to a page must replace other text.
const (
	readmeLines    = 200
	allWords       = 32_000
	transcriptSize = 10
)

func TestDocumentsAreShort(t *testing.T) {
	t.Parallel()
	if lines := strings.Count(read(t, "README.md"), "\n"); lines > readmeLines {
		t.Errorf("README.md has %d lines, want at most %d", lines, readmeLines)
	}
	list := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "*.md")
	list.Dir = root
	files, err := list.Output()
	if err != nil {
		t.Fatalf("list the tree's documents: %v", err)
	}
	words := 0
	for file := range strings.Lines(string(files)) {
		if file = strings.TrimSpace(file); !strings.Contains(file, "testdata/") {
			words += len(strings.Fields(read(t, file)))
		}
	}
	if words > allWords {
		t.Errorf("the documents have %d words, want at most %d", words, allWords)
	}
	if words == 0 {
		t.Error("the documents have no words, want some")
	}
}

// Long outputs of programs belong in a tutorial.
func TestTranscriptsAreShort(t *testing.T) {
	t.Parallel()
	for page, text := range documents(t) {
		if strings.HasPrefix(page, "docs/start/") {
			continue
		}
		for _, block := range fenced.FindAllString(text, -1) {
			language, body, _ := strings.Cut(strings.TrimPrefix(block, "```"), "\n")
			if printed := strings.Count(body, "\n"); (language == "" || language == "console") && printed > transcriptSize {
				t.Errorf("%s shows %d lines of a terminal, want at most %d: %.60q", page, printed, transcriptSize, body)
			}
		}
	}
}
