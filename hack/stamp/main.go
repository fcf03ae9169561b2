// Command stamp gives each file of a clone a time that its content decides, so
// that two clones of one commit are equal to `go test`: it takes a file that a
// test opened for unchanged by its time and size, and a clone's files are all new.
// Files that differ from what git has keep their time. It runs in the clone.
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	stamped, kept, err := stamp(context.Background(), ".")
	if err != nil {
		fmt.Fprintf(os.Stderr, "stamp: %v\n", err)
		os.Exit(1)
	}
	fmt.Printf("%d files have the time of their content, %d that differ from the commit keep theirs\n", stamped, kept)
}

// epoch is before any time that a file system gives to a file that is written.
var epoch = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)

// stamp sets the times of the files that git has in the folder, the root of a clone.
func stamp(ctx context.Context, root string) (stamped, kept int, err error) {
	// status compares contents, and the index then knows the new times.
	changed, err := git(ctx, root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=no")
	if err != nil {
		return 0, 0, err
	}
	differs := map[string]bool{}
	for _, line := range changed {
		differs[line[min(3, len(line)):]] = true
	}
	files, err := git(ctx, root, "ls-files", "-z", "--stage")
	if err != nil {
		return 0, 0, err
	}
	folders := map[string]bool{}
	for _, line := range files {
		about, name, _ := strings.Cut(line, "\t")
		fields := strings.Fields(about) // mode, object, stage
		if len(fields) != 3 {
			return 0, 0, fmt.Errorf("read git ls-files: a line has %d fields before the name, expected mode, object and stage", len(fields))
		}
		if !strings.HasPrefix(fields[0], "100") {
			continue // a link or another repository
		}
		if differs[name] {
			kept++
			continue
		}
		at, err := timeOf(fields[1])
		if err != nil {
			return 0, 0, err
		}
		if err := os.Chtimes(filepath.Join(root, name), at, at); err != nil {
			return 0, 0, fmt.Errorf("set the time of %s: %w", name, err)
		}
		stamped++
		for folder := filepath.Dir(name); folder != "." && !folders[folder]; folder = filepath.Dir(folder) {
			folders[folder] = true
		}
	}
	// What is in a folder counts by itself.
	for folder := range folders {
		if err := os.Chtimes(filepath.Join(root, folder), epoch, epoch); err != nil {
			return 0, 0, fmt.Errorf("set the time of %s: %w", folder, err)
		}
	}
	return stamped, kept, nil
}

// timeOf is a time in the eight years after the epoch that stands for git's hash
// of a content: with the file's size, two contents share it by a chance of 2^-57.
func timeOf(object string) (time.Time, error) {
	hash, err := hex.DecodeString(object)
	if err != nil || len(hash) < 8 {
		return time.Time{}, fmt.Errorf("read git ls-files: an object's name has %d characters, expected a hash in hex", len(object))
	}
	var bits uint64
	for _, b := range hash[:8] {
		bits = bits<<8 | uint64(b)
	}
	seconds, nanoseconds := bits>>36, bits&(1<<36-1)%uint64(time.Second)
	return epoch.Add(time.Duration(seconds)*time.Second + time.Duration(nanoseconds)), nil // 28 bits of seconds, and less than one
}

// git runs a command and gives its lines, which end with zero bytes.
func git(ctx context.Context, root string, args ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(exit.Stderr)))
	case err != nil:
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
}
