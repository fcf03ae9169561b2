package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// errForeign means that a path of the server has a link, a file or another user's folder.
var errForeign = errors.New("it is not a folder of this user")

// account is the user that the server runs as. A nil account means the user of this process.
type account struct {
	name     string
	uid, gid uint32
}

// accountFor chooses an unprivileged user when this process runs as root, because
// PostgreSQL refuses to run as root.
func accountFor(euid int) (*account, error) {
	if euid != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, fmt.Errorf("read the ids of the user %s: %w", name, err)
		}
		return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root and this machine has no user postgres or nobody: " +
		"create one (useradd --system postgres) or run as an ordinary user")
}

// credential makes a child process run as the account.
func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// prepareDir makes the folder dir for the account, with mode 0700, and returns it. If the
// account cannot reach dir, for example below root's home, prepareDir makes, logs and returns
// a folder in os.TempDir instead, which has the same name in each run.
func (a *account) prepareDir(ctx context.Context, dir string, log io.Writer) (string, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // the account must be able to enter
		return "", fmt.Errorf("make the state folder: %w", err)
	}
	if err := a.makePrivate(dir); err != nil {
		return "", err
	}
	if a == nil || a.reaches(ctx, dir) {
		return dir, nil
	}
	other := filepath.Join(os.TempDir(), tempName(dir)+"-data")
	if err := a.makePrivate(other); err != nil {
		return "", err
	}
	if !a.reaches(ctx, other) {
		return "", fmt.Errorf("the user %s, which PostgreSQL runs as, can reach neither %s nor %s: "+
			"set TMPDIR to a folder that every user can reach, or clone to one", a.name, dir, other)
	}
	fmt.Fprintf(log, "The user %s, which PostgreSQL runs as, can not reach %s: the data is in %s instead\n", a.name, dir, other)
	return other, nil
}

// makePrivate makes a folder with mode 0700 that belongs to the account. It accepts an
// existing folder only if it is not a link and belongs to this user or to the account,
// because anybody can create links and folders in a folder for temporary files.
func (a *account) makePrivate(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make the folder: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	trusted := owner == os.Geteuid() || a != nil && owner == int(a.uid)
	if !info.IsDir() || !trusted {
		return fmt.Errorf("%s exists (mode %s, owner id %d), but %w: remove it or name another folder", dir, info.Mode(), owner, errForeign)
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder needs its x bit
		return fmt.Errorf("make the folder: %w", err)
	}
	if a == nil {
		return nil
	}
	if err := os.Lchown(dir, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("give the folder to the user %s: %w", a.name, err)
	}
	return nil
}

// reaches reports whether the account can enter the folder and write to it. It tests this with
// a process of the account, because the modes of parent folders, access lists and mount
// options can all prevent it.
func (a *account) reaches(ctx context.Context, dir string) bool {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `cd "$1" && test -w .`, "sh", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential()}
	return cmd.Run() == nil
}
