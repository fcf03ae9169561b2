package main

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheServerGetsWhatTheFlagsSay(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-bin", "/bin", "-data", "/data/db", "-trust", "--", "-c", "max_connections=200"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/bin/postgres", "-D", "/data/db", "-c", "listen_addresses=*", "-c", "unix_socket_directories=/data", "-c", "max_connections=200"}
	if diff := cmp.Diff(want, o.serve()); diff != "" {
		t.Errorf("command line (-want +got):\n%s", diff)
	}
}

func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want string
	}{
		"nobody said who may connect":                     {[]string{"-bin", "/bin"}, "want -password-file FILE or -trust"},
		"a password that nobody asks for":                 {[]string{"-bin", "/bin", "-trust", "-password-file", "/p"}, "not both"},
		"no programs":                                     {[]string{"-trust"}, "-bin is missing"},
		"a folder that depends on where it is started":    {[]string{"-bin", "/bin", "-trust", "-data", "data"}, "no absolute path"},
		"a database that would be more than a name":       {[]string{"-bin", "/bin", "-trust", "-database", "a; DROP"}, "no plain name"},
		"a database that would have to be quoted, 1relay": {[]string{"-bin", "/bin", "-trust", "-database", "1relay"}, "no plain name"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			if _, err := parse(tt.args, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want one with %q", err, tt.want)
			}
		})
	}
}
