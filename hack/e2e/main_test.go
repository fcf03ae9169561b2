package main

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestSettingsComeFromFlagsAndEnvironment(t *testing.T) {
	t.Parallel()
	set := map[string]string{"KUBECONFIG": "/tmp/kubeconfig", "LOAD_IMAGE": "kind load image-archive"}
	s, err := parse([]string{"-only", "upgrade,rotation", "-seed", "7"}, func(name string) string { return set[name] })
	if err != nil {
		t.Fatal(err)
	}
	if s.kubeconfig != set["KUBECONFIG"] || s.loadImage != set["LOAD_IMAGE"] || strings.Join(s.only, " ") != "upgrade rotation" || s.seed != 7 || !s.build || s.keep {
		t.Errorf("settings %+v", s)
	}
}

func TestWhatIsMissingOrUnknownIsRefused(t *testing.T) {
	t.Parallel()
	const kubeconfig, load = "-kubeconfig=/tmp/kubeconfig", "-load-image=true"
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		// The default kubeconfig of a user may lead to what serves people.
		"no kubeconfig":       {[]string{load}, "KUBECONFIG is not set"},
		"no loader":           {[]string{kubeconfig}, "LOAD_IMAGE is not set"},
		"an unknown scenario": {[]string{kubeconfig, load, "-only=chaos"}, `no scenario "chaos"`},
		"an argument":         {[]string{kubeconfig, load, "upgrade"}, "1 arguments are left over"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := parse(tc.args, func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// The images of operator and relay are for amd64 by default, and those of the
// suite for the machine that builds them: on another one they would not run together.
func TestEveryImageIsBuiltForThisMachine(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "make", append([]string{"--dry-run"}, buildArguments()...)...)
	command.Dir = filepath.Join("..", "..")
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	built := false
	for line := range strings.Lines(string(said)) {
		built = built || strings.Contains(line, "tool build ") && strings.Contains(line, "-platform linux/"+runtime.GOARCH)
	}
	if !built {
		t.Errorf("make would run\n%s\nwant operator and relay built for linux/%s", said, runtime.GOARCH)
	}
}
