package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Source is the state of a checkout.
type Source struct {
	// Revision is the commit, with "+modified" when files differ from it, or
	// "unknown" outside of version control, as the programs' version command says.
	Revision string
	// Time is the commit's, or what SOURCE_DATE_EPOCH says.
	Time time.Time
}

// ReadSource reads the state of the checkout at root from git. Epoch is the value
// of SOURCE_DATE_EPOCH, seconds since 1970, which decides the time unless it is
// empty. The Go command has the commit from git as well, but not in a worktree
// that `git worktree` made.
func ReadSource(ctx context.Context, root, epoch string) (Source, error) {
	source := Source{Revision: "unknown"}
	inside, err := isTop(ctx, root)
	if err != nil {
		return Source{}, err
	}
	seconds := epoch
	if inside {
		commit, err := git(ctx, root, "log", "-1", "--format=%H %ct")
		if err != nil {
			return Source{}, err
		}
		changes, err := git(ctx, root, "status", "--porcelain")
		if err != nil {
			return Source{}, err
		}
		revision, at, _ := strings.Cut(commit, " ")
		source.Revision = revision
		if changes != "" {
			source.Revision += "+modified"
		}
		if epoch == "" {
			seconds = at
		}
	}
	if seconds == "" {
		return Source{}, errors.New("the source has no commit to take the images' time from: build in a clone with git, or set SOURCE_DATE_EPOCH to seconds since 1970")
	}
	since, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || since < 0 {
		return Source{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, want seconds since 1970, such as those of `git log -1 --format=%%ct`", epoch)
	}
	source.Time = time.Unix(since, 0).UTC()
	return source, nil
}

// isTop tells whether root is the top of a repository: an archive of the source
// unpacked inside of another repository has nothing to do with that.
func isTop(ctx context.Context, root string) (bool, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return false, nil
	}
	top, err := git(ctx, root, "rev-parse", "--show-toplevel")
	if err != nil {
		if strings.Contains(err.Error(), "not a git repository") {
			return false, nil
		}
		return false, err
	}
	return sameFolder(top, root)
}

func sameFolder(a, b string) (bool, error) {
	var resolved [2]string
	for i, folder := range []string{a, b} {
		absolute, err := filepath.Abs(folder)
		if err == nil {
			resolved[i], err = filepath.EvalSymlinks(absolute)
		}
		if err != nil {
			return false, fmt.Errorf("look for the repository: %w", err)
		}
	}
	return resolved[0] == resolved[1], nil
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = root
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run git %s: %w: %s", args[0], err, bytes.TrimSpace(complaint.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
