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

	commandline.Common `embed:""`
}

type serve struct {
	Pace  time.Duration `help:"Pause." default:"1s" env:"T_PACE"`
	Limit uint64        `help:"Most." default:"3"`
	Part  int32         `help:"Part." default:"1"`
	Loud  bool          `help:"Say more."`
	End   string        `help:"How it ends." default:"well"`
}

type errorWithCode struct{ error }

func (errorWithCode) ExitCode() int { return 7 }

func (errorWithCode) Unwrap() error { return nil }

// binding is the argument of the command's Run.
type binding struct {
	malformed []error
	got       serve
}

// Run returns the error that --end selects.
func (s *serve) Run(g *binding) error {
	g.got = *s
	switch {
	case len(g.malformed) > 0:
		return append(commandline.Problems{}, g.malformed...)
	case s.End == "usage":
		return fmt.Errorf("%w: a file is missing", commandline.ErrUsage)
	case s.End == "own":
		return fmt.Errorf("sweep: %w", errorWithCode{errors.New("not done")})
	case s.End == "ill":
		return errors.New("the database is down")
	default:
		return nil
	}
}

func TestRunReturnsTheExitCodeOfTheCommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		code int
		says []string
		got  serve
	}{
		"success":              {[]string{"serve", "--pace=2s", "--limit=9", "--part=-2", "--loud"}, 0, nil, serve{Pace: 2 * time.Second, Limit: 9, Part: -2, Loud: true, End: "well"}},
		"a command that fails": {[]string{"serve", "--end=ill"}, commandline.ExitFailed, []string{"program: the database is down"}, serve{Pace: time.Second, Limit: 3, Part: 1, End: "ill"}},
		"a usage error":        {[]string{"serve", "--end=usage"}, commandline.ExitUsage, []string{"wrong use: a file is missing"}, serve{Pace: time.Second, Limit: 3, Part: 1, End: "usage"}},
		"an error with a code": {[]string{"serve", "--end=own"}, 7, []string{"sweep: not done"}, serve{Pace: time.Second, Limit: 3, Part: 1, End: "own"}},
		"no command":           {nil, commandline.ExitUsage, []string{`expected one of "serve"`, "program --help explains"}, serve{}},
		"an extra argument":    {[]string{"serve", canary}, commandline.ExitUsage, []string{"received an argument that is neither"}, serve{}},
		"malformed values": {
			[]string{"serve", "--pace=" + canary, "--limit=-1", "--part=99999999999", "--loud=" + canary}, commandline.ExitUsage,
			[]string{
				"the configuration has 4 problems:",
				"--pace ($RELAYPOOL_PACE): expected a duration such as 30s or 1m30s, received 11 characters that are not",
				"--limit ($RELAYPOOL_LIMIT): expected a whole number of 0 or more",
				"--part ($RELAYPOOL_PART): expected a whole number", "--loud ($RELAYPOOL_LOUD): expected true or false",
			},
			serve{Pace: time.Second, Limit: 3, Part: 1, End: "well"},
		},
		"a malformed value": {
			[]string{"serve", "--limit=" + canary}, commandline.ExitUsage, []string{"the configuration has a problem:"},
			serve{Pace: time.Second, Limit: 3, Part: 1, End: "well"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, stderr strings.Builder
			g := &binding{}
			p := &commandline.Program{Name: "program", Description: "It tests.", Out: &out, Err: &stderr}
			code := p.Run(&commands{}, test.args, func(malformed []error) any {
				g.malformed = malformed
				return g
			})
			if code != test.code || out.Len() > 0 || (code == 0) != (stderr.Len() == 0) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d", code, out.String(), stderr.String(), test.code)
			}
			for _, want := range test.says {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("stderr is %q, want %q in it", stderr.String(), want)
				}
			}
			if strings.Contains(stderr.String(), canary) {
				t.Errorf("stderr repeats a value: %q", stderr.String())
			}
			if diff := cmp.Diff(test.got, g.got); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHelpIncludesEveryCommand(t *testing.T) {
	t.Parallel()
	var out, stderr strings.Builder
	p := &commandline.Program{Name: "program", Description: "It tests.", Out: &out, Err: &stderr}
	code := p.Run(&commands{}, []string{"--help"}, func([]error) any {
		t.Error("a command ran")
		return &binding{}
	})
	for _, want := range []string{"It tests.", "--pace=1s", "Pause. Default: 1s. [$T_PACE]", "Print an object with version and build."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("help is %q, want %q in it", out.String(), want)
		}
	}
	if code != 0 || stderr.Len() > 0 {
		t.Errorf("exit code %d, stderr %q; want 0 and no output", code, stderr.String())
	}
}
