package settings

import (
	"k8s.io/client-go/rest"

	"github.com/relaypool/relaypool/relay/commandline"
)

// Config is a valid Run, with the client configuration of its cluster.
type Config struct {
	Run
	Rest *rest.Config
}

// Load checks all settings and reads the kubeconfig. Its error is a commandline.Problems, and
// contains all problems that were found.
func (r Run) Load() (*Config, error) { return r.load(serviceAccountNamespace) }

func (r Run) load(namespaceFile string) (*Config, error) {
	c := &Config{Run: r}
	c.EarlierProblems = nil
	problems := append(commandline.Problems{}, r.EarlierProblems...)
	var err error
	if c.Rest, err = r.Cluster.Load(); err != nil {
		problems = append(problems, err)
	}
	if c.OperatorNamespace == "" {
		c.OperatorNamespace = namespace(namespaceFile)
	}
	problems = append(problems, CheckImage(c.RelayImage)...)
	problems = append(problems, c.checkNamespaces()...)
	problems = append(problems, c.Tenants.Check()...)
	problems = append(problems, c.Work.check()...)
	problems = append(problems, c.Listening.check()...)
	problems = append(problems, c.checkExternal()...)
	problems = append(problems, c.Leading.check()...)
	problems = append(problems, c.Logging.Check()...)
	if len(problems) > 0 {
		return nil, problems
	}
	return c, nil
}
