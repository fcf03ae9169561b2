package commandline

import (
	"runtime/debug"
	"testing"
)

func TestIdentity(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		settings []debug.BuildSetting
		want     string
	}{
		"a commit":                        {[]debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}}, "abc"},
		"a commit with modified files":    {[]debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}, "abc+modified"},
		"a build without version control": {[]debug.BuildSetting{{Key: "GOOS", Value: "linux"}}, "unknown"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := identity(tc.settings); got != tc.want {
				t.Errorf("received %q, want %q", got, tc.want)
			}
		})
	}
}
