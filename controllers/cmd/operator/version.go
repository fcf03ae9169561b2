package main

import (
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/relaypool/relaypool/relay/contract"
)

type versionCmd struct {
	JSON bool `help:"Print an object with version and build."`
}

// Run prints the version.
func (c *versionCmd) Run(env *environment) error {
	if c.JSON {
		return json.NewEncoder(env.out).Encode(struct {
			Version string `json:"version"`
			Build   string `json:"build"`
		}{contract.Version, built()})
	}
	_, err := fmt.Fprintf(env.out, "operator %s (%s)\n", contract.Version, built())
	return err
}

// built is the identity of what runs: the commit that it was built from, with
// "+modified" when files differed from it, or "unknown" without version control.
func built() string {
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
