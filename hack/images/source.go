package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var versionLine = regexp.MustCompile(`(?m)^const Version = "(.+)"$`)

// source is the checkout that images are built from. Its revision is the commit, with
// "+modified" if files differ from it, or "unknown" outside of version control. The time
// created is SOURCE_DATE_EPOCH, or by default the commit's time.
type source struct {
	root, version, revision string
	created                 time.Time
}

// readSource asks git for the commit, because the go command does not find it in a
// `git worktree`.
func readSource(ctx context.Context, root string) (*source, error) {
	version, err := match(filepath.Join(root, "relay", "contract", "contract.go"), versionLine)
	folder, failed := filepath.Abs(root)
	if err := errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("read the version: %w; is %s the project's root?", err, root)
	}
	// An archive of the source may be unpacked inside another repository. Git must not report
	// that repository's commit.
	ceiling := []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(folder)}
	commit, failed := output(ctx, root, ceiling, "git", "log", "-1", "--format=%H %ct")
	changes, err := output(ctx, root, ceiling, "git", "status", "--porcelain")
	revision, seconds, _ := strings.Cut(commit, " ")
	if changes != "" {
		revision += "+modified"
	}
	seconds = cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), seconds)
	if seconds == "" {
		return nil, fmt.Errorf("the source has no commit to take the images' time from: build in a clone with git, or set SOURCE_DATE_EPOCH to seconds since 1970: %w", errors.Join(failed, err))
	}
	since, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || since < 0 {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH is %q, want seconds since 1970, such as the output of `git log -1 --format=%%ct`", seconds)
	}
	return &source{root: root, version: version, revision: cmp.Or(revision, "unknown"), created: time.Unix(since, 0).UTC()}, nil
}

// match returns the text of the pattern's group at its first match in a file.
func match(file string, pattern *regexp.Regexp) (string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // a file of the checkout
	if found := pattern.FindSubmatch(text); found != nil {
		return string(found[1]), nil
	}
	return "", errors.Join(err, fmt.Errorf("%s has no line %s", file, pattern))
}

func output(ctx context.Context, folder string, environment []string, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), environment...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("run %s %s: %w: %s", program, args[0], err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
