package commandline

import (
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"github.com/relaypool/relaypool/relay/contract"
)

type versionCmd struct {
	JSON bool `help:"Print an object with version and build."`
}

// Run prints version and build.
func (v *versionCmd) Run(ctx *kong.Context) error {
	if v.JSON {
		return json.NewEncoder(ctx.Stdout).Encode(struct {
			Version string `json:"version"`
			Build   string `json:"build"`
		}{contract.Version, Build()})
	}
	_, err := fmt.Fprintf(ctx.Stdout, "%s %s (%s)\n", ctx.Model.Name, contract.Version, Build())
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
