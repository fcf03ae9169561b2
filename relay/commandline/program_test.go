package commandline_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/commandline"
)

const canary = "canary-4711"

type commands struct {
	Serve struct {
		serve
	} `cmd:"" help:"Serve."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

type serve struct {
	Pace  time.Duration `help:"Pause." default:"1s" env:"T_PACE"`
	Limit uint64        `help:"Most." default:"3"`
	Part  int32         `help:"Part." default:"1"`
	Loud  bool          `help:"Say more."`
	End   string        `help:"How it ends." default:"well"`
}

type own struct{ error }

func (own) ExitCode() int { return 7 }

func (own) Unwrap() error { return nil }

// given is what the command was bound to.
type given struct {
	malformed []error
	got       serve
}

// Run ends as its flags say.
func (s *serve) Run(g *given) error {
	g.got = *s
	switch {
	case len(g.malformed) > 0:
		return append(commandline.Problems{}, g.malformed...)
	case s.End == "usage":
		return fmt.Errorf("%w: a file is missing", commandline.ErrUsage)
	case s.End == "own":
		return fmt.Errorf("sweep: %w", own{errors.New("not done")})
	case s.End == "ill":
		return errors.New("the database is away")
	default:
		return nil
	}
}

type versionCmd struct {
	commandline.Version `embed:""`
}

// Run does nothing.
func (*versionCmd) Run(*given) error { return nil }

func TestAProgramEndsAsItsCommandDid(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		code int
		says []string
		got  serve
	}{
		"all is well":            {[]string{"serve", "--pace=2s", "--limit=9", "--part=-2", "--loud"}, 0, nil, serve{Pace: 2 * time.Second, Limit: 9, Part: -2, Loud: true, End: "well"}},
		"a command that fails":   {[]string{"serve", "--end=ill"}, commandline.ExitFailed, []string{"program: the database is away"}, serve{Pace: time.Second, Limit: 3, Part: 1, End: "ill"}},
		"wrong use":              {[]string{"serve", "--end=usage"}, commandline.ExitUsage, []string{"wrong use: a file is missing"}, serve{Pace: time.Second, Limit: 3, Part: 1, End: "usage"}},
		"a code of its own":      {[]string{"serve", "--end=own"}, 7, []string{"sweep: not done"}, serve{Pace: time.Second, Limit: 3, Part: 1, End: "own"}},
		"no command":             {nil, commandline.ExitUsage, []string{`expected one of "serve"`, "program --help explains"}, serve{}},
		"an argument of no flag": {[]string{"serve", canary}, commandline.ExitUsage, []string{"received an argument that is neither"}, serve{}},
		"several values that do not parse": {
			[]string{"serve", "--pace=" + canary, "--limit=-1", "--part=99999999999", "--loud=" + canary}, commandline.ExitUsage,
			[]string{
				"the configuration has 4 problems:",
				"--pace ($RELAYPOOL_PACE): expected a duration such as 30s or 1m30s, received 11 characters that are not",
				"--limit ($RELAYPOOL_LIMIT): expected a whole number of 0 or more",
				"--part ($RELAYPOOL_PART): expected a whole number", "--loud ($RELAYPOOL_LOUD): expected true or false",
			},
			serve{Pace: time.Second, Limit: 3, Part: 1, End: "well"},
		},
		"one value that does not": {
			[]string{"serve", "--limit=" + canary}, commandline.ExitUsage, []string{"the configuration has a problem:"},
			serve{Pace: time.Second, Limit: 3, Part: 1, End: "well"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, said strings.Builder
			g := &given{}
			p := &commandline.Program{Name: "program", Description: "It tests.", Out: &out, Err: &said}
			code := p.Run(&commands{}, test.args, func(malformed []error) any {
				g.malformed = malformed
				return g
			})
			if code != test.code || out.Len() > 0 || (code == 0) != (said.Len() == 0) {
				t.Errorf("ends with %d, prints %q and says %q; want %d", code, out.String(), said.String(), test.code)
			}
			for _, want := range test.says {
				if !strings.Contains(said.String(), want) {
					t.Errorf("says %q, want %q in it", said.String(), want)
				}
			}
			if strings.Contains(said.String(), canary) {
				t.Errorf("says %q, which repeats a value", said.String())
			}
			if diff := cmp.Diff(test.got, g.got); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHelpIsOfEveryCommand(t *testing.T) {
	t.Parallel()
	var out, said strings.Builder
	p := &commandline.Program{Name: "program", Description: "It tests.", Out: &out, Err: &said}
	code := p.Run(&commands{}, []string{"--help"}, func([]error) any {
		t.Error("a command ran")
		return &given{}
	})
	for _, want := range []string{"It tests.", "--pace=1s", "Pause. Default: 1s. [$T_PACE]", "Print an object with version and build."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("help is %q, want %q in it", out.String(), want)
		}
	}
	if code != 0 || said.Len() > 0 {
		t.Errorf("ends with %d and says %q", code, said.String())
	}
}
