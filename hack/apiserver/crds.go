package apiserver

import (
	"fmt"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Install installs CRDs, and returns when the server serves them. It replaces existing
// CRDs of the same names.
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

// OwnCRDs reads the project's CRDs from config/crd.
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
