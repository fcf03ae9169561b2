// Command postgres-entrypoint is what the image relaypool/postgres starts: it makes
// a database cluster when the folder for it is not there, and becomes the server.
// It is for tests of the project alone; a real database comes from elsewhere.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if err == nil {
		err = o.prepare()
	}
	if err == nil {
		// The server takes this process's place, and with it the signals.
		err = syscall.Exec(o.program("postgres"), o.serve(), os.Environ()) //nolint:gosec // the image's own server
		err = fmt.Errorf("start postgres: %w", err)
	}
	if !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "postgres-entrypoint:", err)
		os.Exit(1)
	}
}

// options are what the flags say.
type options struct {
	bin, data, database, passwordFile string
	trust                             bool
	more                              []string
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("postgres-entrypoint", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "postgres-entrypoint [flags] [-- arguments of postgres, such as -c max_connections=200]")
		flags.PrintDefaults()
	}
	flags.StringVar(&o.bin, "bin", "", "`folder` of initdb and postgres (the image sets it)")
	flags.StringVar(&o.data, "data", "/var/lib/postgresql/data", "`folder` of the database cluster, made when it is not there; the one that it is in has to be writable")
	flags.StringVar(&o.database, "database", "", "`name` of a database to make besides postgres")
	flags.StringVar(&o.passwordFile, "password-file", "", "`file` whose first line is the password of the user postgres")
	flags.BoolVar(&o.trust, "trust", false, "let everybody in without a password, who reaches the port")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	o.more = flags.Args()
	switch {
	case o.bin == "":
		return nil, errors.New("-bin is missing: name the folder of initdb and postgres")
	case o.trust == (o.passwordFile != ""):
		return nil, errors.New("want -password-file FILE or -trust, and not both: say who may connect")
	case !filepath.IsAbs(o.data):
		return nil, errors.New("-data is no absolute path: want one such as /var/lib/postgresql/data")
	case !named(o.database):
		return nil, errors.New("-database is no plain name: want small letters, digits and underscores, beginning with a letter")
	}
	return o, nil
}

// named tells whether a database's name can stand in SQL as it is.
func named(database string) bool {
	for i, c := range database {
		switch {
		case c >= 'a' && c <= 'z', i > 0 && (c == '_' || c >= '0' && c <= '9'):
		default:
			return false
		}
	}
	return true
}

func (o *options) program(name string) string { return filepath.Join(o.bin, name) }

// method is the authentication of connections over the network.
func (o *options) method() string {
	if o.trust {
		return "trust"
	}
	return "scram-sha-256"
}

// serve is the server's command line.
func (o *options) serve() []string {
	return append([]string{
		o.program("postgres"), // with its folder, since it looks for its files from there
		"-D", o.data, "-c", "listen_addresses=*",
		// Beside the data, because nothing else needs to be writable then.
		"-c", "unix_socket_directories=" + filepath.Dir(o.data),
	}, o.more...)
}
