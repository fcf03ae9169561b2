package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
)

type supportBundleCmd struct {
	Name              string `arg:"" help:"Name of the RelayPool."`
	File              string `short:"f" placeholder:"FILE" help:"Archive to write. Empty uses NAME-support.tar.gz in the current folder."`
	OperatorNamespace string `default:"relaypool-system" placeholder:"NAMESPACE" help:"Namespace of the operator, for its logs."`
}

// Run writes the archive. What cannot be read is listed in the archive and on standard error, and
// does not stop the rest.
func (c *supportBundleCmd) Run(env *environment) error {
	cluster, err := env.connect()
	if err != nil {
		return err
	}
	pool, err := cluster.relayPool(env, c.Name)
	if err != nil {
		return err
	}
	b := &bundle{connection: cluster, pool: pool, files: map[string][]byte{}, involved: map[types.UID]bool{pool.UID: true}}
	// Secrets come first: what is added later must not contain their values.
	if err := b.addSecrets(env); err != nil {
		return err
	}
	b.addObject("relaypool.yaml", pool)
	b.addOwned(env)
	b.addPods(env)
	b.addOperator(env, c.OperatorNamespace)
	b.addEvents(env)
	b.add("version.txt", []byte(fmt.Sprintf("kubectl-relaypool %s (%s)\n", contract.Version, commandline.Build())))
	b.addProblems()
	file := c.File
	if file == "" {
		file = c.Name + "-support.tar.gz"
	}
	if err := writeArchive(file, c.Name+"-support", b.files, env.now()); err != nil {
		return err
	}
	for _, problem := range b.problems {
		fmt.Fprintf(env.err, "left out: %s\n", problem)
	}
	fmt.Fprintf(env.out, "wrote %d files into %s; it has logs and addresses: read it before you pass it on\n", len(b.files), file)
	return nil
}

// bundle collects the files of an archive.
type bundle struct {
	*connection
	pool *v1alpha1.RelayPool
	// files are the contents by path.
	files map[string][]byte
	// values are the values of Secrets, which no file may contain.
	values secretValues
	// involved are the objects whose events are collected.
	involved map[types.UID]bool
	// podsSilent is set once a pod did not answer; then no pod is asked any more.
	podsSilent bool
	// problems say what could not be read.
	problems []string
}

// add adds a file, without the values of Secrets.
func (b *bundle) add(path string, content []byte) { b.files[path] = b.values.redact(content) }

// addObject adds an object as YAML, without fields that only its field managers read and without
// kubectl's copy of it, which may contain what was removed since.
func (b *bundle) addObject(path string, object any) {
	content, err := json.Marshal(object)
	if err == nil {
		// In YAML, a value may be folded over lines.
		content, err = withoutBookkeeping(b.values.redact(content))
	}
	if err != nil {
		b.failed(path, err)
		return
	}
	b.add(path, content)
}

func (b *bundle) failed(what string, err error) {
	b.problems = append(b.problems, what+": "+string(b.values.redact([]byte(err.Error()))))
}

func (b *bundle) addProblems() {
	if len(b.problems) == 0 {
		return
	}
	var text []byte
	for _, problem := range b.problems {
		text = append(text, problem+"\n"...)
	}
	b.add("left-out.txt", text)
}

// secretFacts is what the bundle says about a Secret.
type secretFacts struct {
	Name   string            `json:"name"`
	Type   string            `json:"type,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Keys   []string          `json:"keys,omitempty"`
	// Missing is set if there is no such Secret, and Unread if it could not be read.
	Missing bool `json:"missing,omitempty"`
	Unread  bool `json:"unread,omitempty"`
}

// addSecrets lists the Secrets that the RelayPool uses. Their values are read, because Kubernetes
// has no other way to the key names; they serve to find them in other files, and are not written.
func (b *bundle) addSecrets(ctx context.Context) error {
	names, err := secretNames(b.pool)
	if err != nil {
		return err
	}
	var list []secretFacts
	for _, name := range names {
		secret, err := b.core.Secrets(b.namespace).Get(ctx, name, getOptions)
		facts := secretFacts{Name: name}
		switch {
		case apierrors.IsNotFound(err):
			facts.Missing = true
		case err != nil:
			facts.Unread = true
			b.failed("keys of Secret "+name+" (its values are not looked for in the other files)", err)
		default:
			facts.Type, facts.Labels, facts.Keys = string(secret.Type), secret.Labels, slices.Sorted(maps.Keys(secret.Data))
			b.values.learn(secret.Name, secret.Data)
		}
		list = append(list, facts)
	}
	b.values.learnURLs(b.pool)
	b.addObject("secrets.yaml", map[string]any{"secrets": list})
	return nil
}
