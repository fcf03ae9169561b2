package apiserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// addressFile holds the API server's address, below the server's folder.
const addressFile = "address"

// AdminGroup is the group that may do anything.
const AdminGroup = "system:masters"

// Access gives clients of a running server their identities. It is safe for
// concurrent use.
type Access struct {
	address   string // https://127.0.0.1:port
	authority *authority
}

// Open gives access to the server of that Dir, which this or another process
// runs.
func Open(dir string) (*Access, error) {
	authority, err := readAuthority(dir)
	if err != nil {
		return nil, fmt.Errorf("open the API server's folder: %w", err)
	}
	address, err := os.ReadFile(filepath.Join(dir, addressFile))
	if err != nil {
		return nil, fmt.Errorf("open the API server's folder: %w", err)
	}
	return &Access{address: strings.TrimSpace(string(address)), authority: authority}, nil
}

// Config is the configuration of a client that may do anything.
func (a *Access) Config() (*rest.Config, error) {
	return a.User("relaypool-test-admin", AdminGroup)
}

// User is the configuration of a client with a certificate for the user of
// that name in those groups. RBAC decides what it may do: nothing, until a
// binding names it. The user system:serviceaccount:<namespace>:<name> in the
// groups system:serviceaccounts and system:serviceaccounts:<namespace> is what
// pods of that service account are; ServiceAccount has the same with a token.
func (a *Access) User(name string, groups ...string) (*rest.Config, error) {
	pair, err := a.authority.user(name, groups)
	if err != nil {
		return nil, fmt.Errorf("make a user: %w", err)
	}
	config := a.anonymous()
	config.TLSClientConfig.CertData, config.TLSClientConfig.KeyData = pair.cert, pair.key
	return config, nil
}

// ServiceAccount is the configuration of a client with a token of the service
// account, which must exist, for an hour.
func (a *Access) ServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	admin, err := a.Config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("request a token of the service account %s/%s: %w", namespace, name, err)
	}
	config := a.anonymous()
	config.BearerToken = token.Status.Token
	return config, nil
}

// anonymous knows the server and says nothing about the client.
func (a *Access) anonymous() *rest.Config {
	return &rest.Config{
		Host:            a.address,
		TLSClientConfig: rest.TLSClientConfig{CAData: slices.Clone(a.authority.pem())},
		// Tests do what they do at once; the default is 5 requests a second.
		QPS: 1000, Burst: 2000,
	}
}
