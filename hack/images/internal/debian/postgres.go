package debian

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/relaypool/relaypool/hack/images/internal/rootfs"
)

// Postgres is an installed server.
type Postgres struct {
	// Version is the major one, such as 15.
	Version int
	// Bin is the folder of its programs.
	Bin string
}

// server is where Debian installs servers, a folder for each version.
const server = "/usr/lib/postgresql"

// FindPostgres finds the newest installed server.
func FindPostgres() (Postgres, error) {
	programs, err := filepath.Glob(server + "/*/bin/initdb")
	if err != nil {
		return Postgres{}, fmt.Errorf("look for Postgres: %w", err)
	}
	var found []Postgres
	for _, program := range programs {
		bin := filepath.Dir(program)
		if version, err := strconv.Atoi(filepath.Base(filepath.Dir(bin))); err == nil {
			found = append(found, Postgres{version, bin})
		}
	}
	if len(found) == 0 {
		return Postgres{}, fmt.Errorf("no Postgres server in %s, whose files the image postgres has: as root on Debian or Ubuntu, run `apt-get install postgresql`", server)
	}
	return slices.MaxFunc(found, func(a, b Postgres) int { return cmp.Compare(a.Version, b.Version) }), nil
}

// Files are those of the server that a database without extensions needs, with the
// shell that initdb starts the server through.
func (p Postgres) Files(ctx context.Context) (rootfs.Tree, error) {
	f := New()
	lib := filepath.Join(filepath.Dir(p.Bin), "lib")
	share := "/usr/share/postgresql/" + strconv.Itoa(p.Version)
	programs := []string{"/bin/sh"}
	for _, program := range []string{"postgres", "initdb", "pg_isready"} {
		programs = append(programs, filepath.Join(p.Bin, program))
	}
	for _, library := range []string{"plpgsql.so", "dict_snowball.so", "libpqwalreceiver.so", "pgoutput.so"} {
		programs = append(programs, filepath.Join(lib, library))
	}
	for _, program := range programs {
		if err := f.AddProgram(ctx, program); err != nil {
			return nil, err
		}
	}
	parts := []string{"extension/plpgsql.control", "timezonesets", "tsearch_data"}
	texts, err := filepath.Glob(share + "/*.*")
	if err != nil {
		return nil, fmt.Errorf("list the server's files: %w", err)
	}
	scripts, err := filepath.Glob(share + "/extension/plpgsql--*.sql")
	if err != nil {
		return nil, fmt.Errorf("list the server's files: %w", err)
	}
	all := slices.Concat(texts, scripts, []string{"/usr/share/zoneinfo/UTC", "/usr/share/zoneinfo/Etc/UTC", "/usr/share/zoneinfo/GMT"})
	for _, part := range parts {
		all = append(all, filepath.Join(share, part))
	}
	for _, name := range all {
		if err := f.Add(name); err != nil {
			return nil, err
		}
	}
	if license := "/usr/share/doc/postgresql-" + strconv.Itoa(p.Version) + "/copyright"; exists(license) {
		if err := f.Add(license); err != nil {
			return nil, err
		}
	}
	return f.Tree()
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
