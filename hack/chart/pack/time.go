package pack

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Time is when the source at root was committed, or what epoch says, the value of
// SOURCE_DATE_EPOCH in seconds since 1970, unless that is empty.
func Time(ctx context.Context, root, epoch string) (time.Time, error) {
	if epoch == "" {
		cmd := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct")
		cmd.Dir = root
		out, err := cmd.Output()
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			return time.Time{}, fmt.Errorf("ask git for the commit's time: %w: %s: package in a clone, or set SOURCE_DATE_EPOCH to seconds since 1970", err, strings.TrimSpace(string(failed.Stderr)))
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("ask git for the commit's time: %w", err)
		}
		epoch = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, want seconds since 1970, such as those of `git log -1 --format=%%ct`", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
