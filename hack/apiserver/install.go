package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// establishTimeout bounds the wait for a CRD to be served.
const establishTimeout = time.Minute

// OwnCRDs reads the definitions of the project's own resources from config/crd.
func OwnCRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(root, "config", "crd", "relaypool.dev_*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("find the CRDs: %w", err)
	}
	if len(paths) == 0 {
		return nil, errors.New("find the CRDs: config/crd has no file relaypool.dev_*.yaml: run make generate")
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read a CRD: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("read the CRD %s: %w", filepath.Base(path), err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// Install makes the server serve the resources, and returns when it does. A
// definition that is there already is replaced.
func (a *Access) Install(ctx context.Context, crds ...*apiextensionsv1.CustomResourceDefinition) error {
	cl, err := a.crdClient()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, establishTimeout)
	defer cancel()
	for _, crd := range crds {
		fresh := crd.DeepCopy()
		err := cl.Create(ctx, fresh)
		if apierrors.IsAlreadyExists(err) {
			live := &apiextensionsv1.CustomResourceDefinition{}
			if err := cl.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
				return fmt.Errorf("install the CRD %s: %w", crd.Name, err)
			}
			fresh.ResourceVersion = live.ResourceVersion
			err = cl.Update(ctx, fresh)
		}
		if err != nil {
			return fmt.Errorf("install the CRD %s: %w", crd.Name, err)
		}
	}
	for _, crd := range crds {
		if err := a.awaitServed(ctx, cl, crd); err != nil {
			return fmt.Errorf("install the CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

// Uninstall removes the resources and every object of them, and returns when
// the definitions are gone.
func (a *Access) Uninstall(ctx context.Context, crds ...*apiextensionsv1.CustomResourceDefinition) error {
	cl, err := a.crdClient()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, establishTimeout)
	defer cancel()
	for _, crd := range crds {
		if err := client.IgnoreNotFound(cl.Delete(ctx, crd.DeepCopy())); err != nil {
			return fmt.Errorf("uninstall the CRD %s: %w", crd.Name, err)
		}
		err := poll(ctx, func() (bool, error) {
			err := cl.Get(ctx, client.ObjectKeyFromObject(crd), &apiextensionsv1.CustomResourceDefinition{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
		if err != nil {
			return fmt.Errorf("uninstall the CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

func (a *Access) crdClient() (client.Client, error) {
	config, err := a.Config()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	cl, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return cl, nil
}

// awaitServed waits for the condition and for discovery, which follows it a
// moment later.
func (a *Access) awaitServed(ctx context.Context, cl client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	config, err := a.Config()
	if err != nil {
		return err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return poll(ctx, func() (bool, error) {
		live := &apiextensionsv1.CustomResourceDefinition{}
		if err := cl.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
			return false, err
		}
		established := false
		for _, c := range live.Status.Conditions {
			switch {
			case c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue:
				established = true
			case c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse,
				c.Type == apiextensionsv1.NonStructuralSchema && c.Status == apiextensionsv1.ConditionTrue:
				return false, fmt.Errorf("the server refuses it: %s: %s", c.Reason, c.Message)
			}
		}
		if !established {
			return false, nil
		}
		for _, version := range crd.Spec.Versions {
			if version.Served && !serves(discoverer, crd.Spec.Group+"/"+version.Name, crd.Spec.Names.Plural) {
				return false, nil
			}
		}
		return true, nil
	})
}

// serves tells whether discovery has the resource. Its errors come and go
// while groups appear; the deadline of the wait reports them as not served.
func serves(discoverer discovery.DiscoveryInterface, groupVersion, plural string) bool {
	resources, err := discoverer.ServerResourcesForGroupVersion(groupVersion)
	if err != nil {
		return false
	}
	for i := range resources.APIResources {
		if resources.APIResources[i].Name == plural {
			return true
		}
	}
	return false
}

// poll asks until done, an error or the end of ctx.
func poll(ctx context.Context, done func() (bool, error)) error {
	for {
		finished, err := done()
		if finished || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}
