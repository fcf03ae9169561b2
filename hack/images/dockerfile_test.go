package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// stages parses the Dockerfile as Docker does.
func stages(t *testing.T) map[string]instructions.Stage {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for _, w := range parsed.Warnings {
		t.Errorf("Docker warns: %s", w.Short)
	}
	list, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]instructions.Stage{}
	for _, s := range list {
		all[s.Name] = s
	}
	return all
}

// configuration is the image configuration of a stage from scratch.
type configuration struct {
	User        string
	Entrypoint  []string
	Environment []string
	Labels      map[string]string
	// Copied are the arguments of the COPY instructions.
	Copied []string
}

// configure returns the configuration that a stage's instructions make with the given build
// arguments.
func configure(t *testing.T, s instructions.Stage, arguments map[string]string) configuration {
	t.Helper()
	// BuildKit sets this for every image from scratch.
	c := configuration{Environment: []string{searchPath}, Labels: map[string]string{}}
	known := map[string]string{}
	words := shell.NewLex('\\')
	for _, command := range s.Commands {
		if e, ok := command.(instructions.SupportsSingleWordExpansion); ok {
			err := e.Expand(func(word string) (string, error) {
				result, err := words.ProcessWordWithMatches(word, environment(known))
				return result.Result, err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		switch command := command.(type) {
		case *instructions.ArgCommand:
			for _, a := range command.Args {
				if known[a.Key] = arguments[a.Key]; a.Value == nil || arguments[a.Key] == "" {
					t.Errorf("argument %s of stage %s: want a default, and a value in this test", a.Key, s.Name)
				}
			}
		case *instructions.LabelCommand:
			for _, l := range command.Labels {
				c.Labels[l.Key] = l.Value
			}
		case *instructions.UserCommand:
			c.User = command.User
		case *instructions.EntrypointCommand:
			if command.PrependShell {
				t.Errorf("stage %s has an entry point that needs a shell, which the image lacks", s.Name)
			}
			c.Entrypoint = command.CmdLine
		case *instructions.CopyCommand:
			c.Copied = append(c.Copied, command.From+":"+strings.Join(command.SourcePaths, ",")+" "+command.DestPath)
		default:
			t.Errorf("stage %s has the instruction %s, want only instructions that this test compares with `make images`", s.Name, command.Name())
		}
	}
	return c
}

// environment gives BuildKit's word expansion the build arguments.
type environment map[string]string

func (e environment) Get(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

func (e environment) Keys() []string {
	var names []string
	for name := range e {
		names = append(names, name)
	}
	return names
}

func TestTheDockerfileConfiguresImagesAsMakeImagesDoes(t *testing.T) {
	t.Parallel()
	all := stages(t)
	s := &source{version: "1.2.3", revision: "c0ffee", created: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	arguments := map[string]string{"VERSION": s.version, "REVISION": s.revision, "CREATED": s.created.Format(time.RFC3339)}
	for _, p := range released {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			stage, found := all[p.name]
			if !found {
				t.Fatalf("the Dockerfile has no stage %s", p.name)
			}
			if stage.BaseName != "scratch" {
				t.Errorf("the image is based on %s, want scratch", stage.BaseName)
			}
			config := s.configuration(p)
			want := configuration{
				User: config.User, Entrypoint: config.Entrypoint, Environment: config.Env, Labels: config.Labels,
				Copied: []string{p.name + "-files:/rootfs/ /"},
			}
			if diff := cmp.Diff(want, configure(t, stage, arguments)); diff != "" {
				t.Errorf("configuration (-make images +Dockerfile):\n%s", diff)
			}
			files := all[p.name+"-files"]
			if files.BaseName != "build" || len(files.Commands) != 1 {
				t.Fatalf("the files are made from stage %s by %d commands, want stage build and 1 command", files.BaseName, len(files.Commands))
			}
			command := files.Commands[0].(*instructions.RunCommand).CmdLine[0]
			wantCommand := "images rootfs -root /src -image " + p.name + " -platform ${TARGETOS}/${TARGETARCH} -out /rootfs"
			if got := strings.TrimSpace(command); got != wantCommand {
				t.Errorf("the files are made by %q, want %q", got, wantCommand)
			}
		})
	}
}

func TestTheDockerfileUsesTheGoVersionOfGoMod(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(module)
	if version == nil {
		t.Fatal("go.mod names no version of Go")
	}
	want := regexp.MustCompile("^golang:" + regexp.QuoteMeta(string(version[1])) + "@sha256:[0-9a-f]{64}$")
	if got := stages(t)["build"].BaseName; !want.MatchString(got) {
		t.Errorf("programs are built in %s, want Go %s under its digest", got, version[1])
	}
}

// If .dockerignore lists a committed file, the revision becomes "+modified". If it does not list
// a file that git ignores, the programs may differ.
func TestDockerIgnoresWhatGitIgnores(t *testing.T) {
	t.Parallel()
	patterns := func(file string) []string {
		content, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for line := range strings.Lines(string(content)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				list = append(list, strings.TrimPrefix(line, "**/")) // git's patterns match in every folder without this prefix
			}
		}
		slices.Sort(list)
		return list
	}
	if diff := cmp.Diff(patterns(".gitignore"), patterns(".dockerignore")); diff != "" {
		t.Errorf("ignored (-by git +by Docker):\n%s", diff)
	}
}
