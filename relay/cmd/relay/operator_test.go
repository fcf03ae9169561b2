package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/relaypool/relaypool/hack/testca"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/config"
)

// goldens are the objects that the operator makes.
const goldens = "../../../controllers/internal/build/testdata/*.golden.yaml"

// manifest is the part of an object that determines what its pod runs.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Args []string
					Env  []struct{ Name, Value string }
				}
				Volumes []volume
			}
		}
	}
}

type volume struct {
	Name      string
	Projected struct{ Sources []source }
}

type source struct {
	Secret    *projection
	ConfigMap *projection `yaml:"configMap"`
}

type projection struct{ Items []struct{ Path string } }

// The relay must accept what the operator configures: the test reads the command line,
// variables and files of each pod, as the pod would.
func TestTheRelayAcceptsTheOperatorsSettings(t *testing.T) {
	files, err := filepath.Glob(goldens)
	if err != nil || len(files) < 6 {
		t.Fatalf("%d golden files at %s, %v", len(files), goldens, err)
	}
	for _, file := range files {
		data := map[string]string{}
		for _, m := range manifests(t, file) {
			if m.Kind == "ConfigMap" {
				data = m.Data
			}
			if m.Kind != "Deployment" && m.Kind != "Job" {
				continue
			}
			t.Run(filepath.Base(file)+" "+m.Kind+" "+m.Metadata.Name, func(t *testing.T) {
				root := mount(t, &m, data)
				container := m.Spec.Template.Spec.Containers[0]
				for _, v := range container.Env {
					t.Setenv(v.Name, strings.ReplaceAll(v.Value, contract.Root, root))
				}
				args := make([]string, len(container.Args))
				for i, arg := range container.Args {
					args[i] = strings.ReplaceAll(arg, contract.Root, root)
				}
				if err := parseSettings(t, args); err != nil {
					t.Errorf("relay %s: %v", strings.Join(container.Args, " "), err)
				}
			})
		}
	}
}

func manifests(t *testing.T, file string) (all []manifest) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var m manifest
		switch err := decoder.Decode(&m); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, m)
	}
}

// mount writes the files of the pod's volume below a folder and returns the folder.
func mount(t *testing.T, m *manifest, data map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	key, err := os.ReadFile(verifyingKey)
	if err != nil {
		t.Fatal(err)
	}
	authority := testca.New(t)
	certificate, clientKey := authority.Issue(t, "relaypool")
	contents := map[string]string{
		contract.DatabaseClientCertFile: string(certificate),
		contract.DatabaseClientKeyFile:  string(clientKey),

		contract.VerifyingKeyFile: string(key),
		contract.DatabaseURLFile:  "postgres://user:password@db.example:5432/relay\n",
		contract.RouterURLFile:    "https://router.example/swap/v1?key=secret\n",
		contract.RouterAPIKeyFile: "api-key\n",
		contract.APIKeysFile:      "the-key-of-a-client\n",
		contract.ProfileFile:      "base: shield-pool-v1\n",
	}
	for _, list := range []string{contract.EndpointsFile, contract.FallbackRoutersFile, contract.SignersFile} {
		contents[list] = strings.ReplaceAll(data[filepath.Base(list)], contract.Root, root)
	}
	if m.Kind == "Job" { // its ConfigMap is in the golden file of the fleet
		contents[contract.EndpointsFile] = "[{name: public, url: 'https://rpc.example'}]"
	}
	contents[contract.SignInMessagesFile] = data[filepath.Base(contract.SignInMessagesFile)]
	volumes := m.Spec.Template.Spec.Volumes
	files := slices.IndexFunc(volumes, func(v volume) bool { return v.Name == "files" })
	for _, s := range volumes[files].Projected.Sources {
		from := s.Secret
		if from == nil {
			from = s.ConfigMap
		}
		if from == nil {
			continue // a token of the service account, which is read where it is used
		}
		for _, item := range from.Items {
			path := filepath.Join(root, item.Path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			content, known := contents[filepath.Join(contract.Root, item.Path)]
			switch {
			case strings.HasPrefix(item.Path, "payers/"):
				succeed(t, "", "keygen", path)
				continue
			case strings.HasSuffix(item.Path, "/ca.crt"):
				content = string(authority.PEM)
			case strings.HasPrefix(item.Path, "signers/"): // read where it is used
				content = "a token or credentials"
			case strings.HasPrefix(item.Path, "rpc/"):
				content = "https://rpc.example/?api-key=secret"
			case strings.HasPrefix(item.Path, "fallback-routers/"):
				content = "https://router.example"
			case !known:
				t.Fatalf("this test has no content for the mounted file %s", item.Path)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// parseSettings parses a command line up to the point where the command would connect to database
// and chain.
func parseSettings(t *testing.T, args []string) error {
	t.Helper()
	env := &environment{Context: t.Context(), in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	parsed, found, err := program(env).Parse(new(cli), args)
	if err != nil {
		return err
	}
	switch c := parsed.Selected().Target.Addr().Interface().(type) {
	case *serveCmd:
		c.EarlierProblems = found
		_, err := c.Load()
		return errors.Join(err, checkFeePayerKeys(c.FeePayerKeyFile))
	case *sweepFundCmd:
		c.EarlierProblems = found
		_, err := c.Load(config.CheckBalance("target", c.Target))
		return errors.Join(err, checkKeyCount(c.From, 1), checkKeyCount(c.To, 1))
	case *sweepDrainCmd:
		c.EarlierProblems = found
		_, err := c.Load()
		return errors.Join(err, checkKeyCount(c.From, 1))
	case *sweepAllCmd:
		c.EarlierProblems = found
		_, err := c.Load()
		return errors.Join(err, checkKeyCount(c.From, 1), checkKeyCount([]string{c.To}, 1))
	default:
		t.Fatalf("this test does not know the command %T", c)
		return nil
	}
}

func checkKeyCount(paths []string, want int) error {
	keys, err := keysOf("from", paths)
	if err == nil && len(keys) != want {
		err = errors.New("the number of keys differs from what the operator mounts")
	}
	return err
}
