package release

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Images are what the suite runs, by their references.
type Images struct {
	Operator, Relay string
	// NextRelay is the relay's image under another tag.
	NextRelay             string
	Postgres, Chain, Gate string
}

// nextSuffix makes the tag of the next release.
const nextSuffix = "-next"

// Loader makes images known to a cluster's nodes.
type Loader struct {
	// Command is a shell command to which an archive's path is added: kind load
	// image-archive.
	Command string
	// Folder is where make images has put operator.tar and relay.tar, and
	// make e2e-images, in its folder e2e, the others.
	Folder string
}

// Load loads every image, the relay's a second time under the next tag, and gives
// their references.
func (l *Loader) Load(ctx context.Context) (*Images, error) {
	images := &Images{}
	for path, into := range map[string]*string{
		"operator.tar": &images.Operator, "relay.tar": &images.Relay,
		"e2e/postgres.tar": &images.Postgres, "e2e/localnet.tar": &images.Chain, "e2e/gate.tar": &images.Gate,
	} {
		archive := filepath.Join(l.Folder, filepath.FromSlash(path))
		var err error
		if *into, err = Tag(archive); err != nil {
			return nil, err
		}
		if err := l.load(ctx, archive); err != nil {
			return nil, err
		}
	}
	images.NextRelay = images.Relay + nextSuffix
	next := filepath.Join(l.Folder, "e2e", "relay-next.tar")
	if err := Retag(filepath.Join(l.Folder, "relay.tar"), next, images.NextRelay); err != nil {
		return nil, err
	}
	return images, l.load(ctx, next)
}

func (l *Loader) load(ctx context.Context, archive string) error {
	// A shell, because the user's command may have arguments and quotes.
	command := exec.CommandContext(ctx, "sh", "-c", l.Command+` "$0"`, archive)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("load %s by LOAD_IMAGE (%s): %w: %s", archive, l.Command, err, bytes.TrimSpace(out))
	}
	return nil
}

// TagOf is a reference's tag.
func TagOf(reference string) string {
	return reference[strings.LastIndexByte(reference, ':')+1:]
}
