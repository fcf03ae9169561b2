package config

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/relaypool/relaypool/relay/commandline"
)

// checkKeyFiles checks that each path leads to a file with content, or to a directory with
// files. The keys themselves are read where they are used.
func (s Serve) checkKeyFiles() (problems []error) {
	const (
		flag   = "fee-payer-key-file"
		advice = "make a key with relay keygen, fund its address, and name its file"
	)
	if len(s.FeePayerKeyFile) == 0 {
		if s.FeePayerSignersFile != "" {
			return nil
		}
		return []error{commandline.Problem(flag, "is missing: %s", advice)}
	}
	if strings.HasPrefix(s.FeePayerKeyFile[0], "[") { // the content of a key file, which was split at its commas
		return []error{commandline.Problem(flag, "starts like a JSON array: expected a path, not the content")}
	}
	for _, path := range s.FeePayerKeyFile {
		entries, err := os.ReadDir(path)
		switch {
		case err != nil: // no directory
			if _, err := readFile(flag, path, advice); err != nil {
				problems = append(problems, err)
			}
		case !slices.ContainsFunc(entries, isKeyFile):
			problems = append(problems, commandline.Problem(flag, "a directory that it names has no file, except those whose names begin with a dot: %s", advice))
		}
	}
	return problems
}

// isKeyFile reports whether a directory's entry may be the file of a key. A Kubernetes volume
// also has entries whose names begin with a dot; those are not files of keys.
func isKeyFile(e fs.DirEntry) bool { return !e.IsDir() && !strings.HasPrefix(e.Name(), ".") }

// CheckKeyPaths checks that each path of a flag leads to a file with content, or to a directory
// with files. The keys themselves are read where they are used. No error contains the path: if
// somebody gives a key instead of a path, the key must not get into the log.
func CheckKeyPaths(flag string, paths []string) error {
	if len(paths) > 0 && strings.HasPrefix(paths[0], "[") { // the content of a key file, which was split at its commas
		return flagProblem(flag, "starts like a JSON array: expected a path, not the content")
	}
	for i, path := range paths {
		entries, err := os.ReadDir(path)
		if err == nil {
			if !slices.ContainsFunc(entries, isKeyFile) {
				return flagProblem(flag, "directory %d of %d has no file, except those whose names begin with a dot", i+1, len(paths))
			}
			continue
		}
		content, err := readContent(path)
		switch {
		case err != nil:
			return flagProblem(flag, "file %d of %d %w", i+1, len(paths), err)
		case content == "":
			return flagProblem(flag, "file %d of %d is empty: expected a key as relay keygen writes it", i+1, len(paths))
		}
	}
	return nil
}
