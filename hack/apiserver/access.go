package apiserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	admin      = "relaypool-test-admin"
	adminGroup = "system:masters" // has all permissions
)

// Config is the configuration of a client with all permissions.
func (s *Server) Config() (*rest.Config, error) { return s.User(admin, adminGroup) }

// User is the configuration of a client with a certificate for the user of that name in
// those groups. RBAC decides what it may do: nothing, until a binding names it. Pods of a
// service account are the user system:serviceaccount:<namespace>:<name> in the groups
// system:serviceaccounts and system:serviceaccounts:<namespace>; ServiceAccount returns
// the same with a token.
func (s *Server) User(name string, groups ...string) (*rest.Config, error) {
	user, err := s.user(name, groups)
	if err != nil {
		return nil, err
	}
	config := user.Config()
	config.Host = strings.TrimSuffix(config.Host, "/")
	return config, nil
}

func (s *Server) user(name string, groups []string) (*envtest.AuthenticatedUser, error) {
	s.users.Lock()
	defer s.users.Unlock()
	// Tests need many requests at once; the default is 5 a second.
	return s.Plane.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: 1000, Burst: 2000})
}

// ServiceAccount is the configuration of a client with a token of the service
// account, which must exist, for an hour.
func (s *Server) ServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("request a token of the service account %s/%s: %w", namespace, name, err)
	}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token.Status.Token
	return config, nil
}

// Kubeconfig writes a file that gives kubectl all permissions, and returns its
// path.
func (s *Server) Kubeconfig() (string, error) {
	user, err := s.user(admin, []string{adminGroup})
	if err != nil {
		return "", err
	}
	content, err := user.KubeConfig()
	if err != nil {
		return "", fmt.Errorf("write the kubeconfig: %w", err)
	}
	return s.path("kubeconfig"), os.WriteFile(s.path("kubeconfig"), content, 0o600)
}

// Install makes the server serve resources, and returns once it does. It replaces
// existing definitions.
func (s *Server) Install(crds ...*apiextensionsv1.CustomResourceDefinition) error {
	config, err := s.Config()
	if err != nil {
		return err
	}
	copies := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(crds))
	for _, crd := range crds {
		copies = append(copies, crd.DeepCopy())
	}
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: copies, MaxTime: time.Minute, PollInterval: pollInterval})
	return err
}

// OwnCRDs reads the definitions of the project's own resources from config/crd.
func OwnCRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	options := envtest.CRDInstallOptions{Paths: []string{filepath.Join(root, "config", "crd")}, ErrorIfPathMissing: true}
	if err := envtest.ReadCRDFiles(&options); err != nil {
		return nil, fmt.Errorf("read the CRDs in config/crd: %w", err)
	}
	return options.CRDs, nil
}
