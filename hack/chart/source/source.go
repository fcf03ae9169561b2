// Package source makes the parts of the chart that stand elsewhere in the tree
// already: the RelayPool's definition, the operator's role and its alerts.
package source

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// DefinitionAnnotation says of a definition in a cluster which one it is: an
// upgrade applies the chart's where the two differ.
const DefinitionAnnotation = "relaypool.dev/definition"

// generated is the first line of what From files take over.
const generated = "# Generated from %s by go generate ./... in hack/chart. Do not edit.\n"

// Definition is the custom resource definition of config/crd as the chart has it:
// with annotations that keep it when a release goes, and that say which it is.
func Definition(crd []byte) ([]byte, error) {
	const mark = "  annotations:\n"
	before, after, found := bytes.Cut(crd, []byte(mark))
	if !found || bytes.Count(before, []byte("\n")) > 4 {
		return nil, errors.New("the definition of config/crd has no metadata.annotations within its first lines: expected what controller-gen writes")
	}
	sum := sha256.Sum256(crd)
	var out bytes.Buffer
	out.Write(before)
	out.WriteString(mark)
	fmt.Fprintf(&out, "    helm.sh/resource-policy: keep\n    %s: %s\n", DefinitionAnnotation, hex.EncodeToString(sum[:8]))
	out.Write(after)
	return out.Bytes(), nil
}

// From is a file from the line that is the key's on, under a line that says which
// file it is: a part of an object that a template puts into its own.
func From(path string, file []byte, key string) ([]byte, error) {
	at := bytes.Index(file, []byte("\n"+key+":\n"))
	if at < 0 {
		return nil, fmt.Errorf("%s has no %s at its first level", path, key)
	}
	return append(fmt.Appendf(nil, generated, path), file[at+1:]...), nil
}
