package commandline

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/relaypool/relaypool/relay/contract"
)

// Version holds the flags of a command that prints version and build.
type Version struct {
	JSON bool `help:"Print an object with version and build."`
}

// Print writes the program's version.
func (v Version) Print(w io.Writer, program string) error {
	if v.JSON {
		return json.NewEncoder(w).Encode(struct {
			Version string `json:"version"`
			Build   string `json:"build"`
		}{contract.Version, Build()})
	}
	_, err := fmt.Fprintf(w, "%s %s (%s)\n", program, contract.Version, Build())
	return err
}

// Build returns the identity of the running build: its commit, with "+modified" when files
// differed from it, or "unknown" without version control.
func Build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return identity(info.Settings)
}

func identity(settings []debug.BuildSetting) string {
	commit, suffix := "unknown", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			suffix = "+modified"
		}
	}
	return commit + suffix
}
