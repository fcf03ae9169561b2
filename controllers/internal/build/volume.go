package build

import (
	"cmp"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

// files is one volume with everything below contract.Root. It has a source for each
// value, so that pods mount only the values that the relay needs.
type files struct {
	sources []*corev1ac.VolumeProjectionApplyConfiguration
}

func (f *files) secret(name, key, file string) {
	f.sources = append(f.sources, corev1ac.VolumeProjection().
		WithSecret(corev1ac.SecretProjection().WithName(name).WithItems(item(key, file))))
}

// secretKey adds one value of a Secret, or nothing if from is nil.
func (f *files) secretKey(from *v1alpha1.SecretKeyReference, file string) {
	if from != nil {
		f.secret(from.Name, from.Key, file)
	}
}

func (f *files) configMap(name, key, file string) {
	f.sources = append(f.sources, corev1ac.VolumeProjection().
		WithConfigMap(corev1ac.ConfigMapProjection().WithName(name).WithItems(item(key, file))))
}

// certificates adds the value with certificates, or nothing if from is nil.
func (f *files) certificates(from *v1alpha1.CertificatesSource, file string) {
	if from == nil {
		return
	}
	f.secretKey(from.SecretRef, file)
	if ref := from.ConfigMapRef; ref != nil {
		f.configMap(ref.Name, ref.Key, file)
	}
}

func (f *files) volume() *corev1ac.ProjectedVolumeSourceApplyConfiguration {
	return corev1ac.ProjectedVolumeSource().WithSources(f.sources...)
}

func item(key, file string) *corev1ac.KeyToPathApplyConfiguration {
	return corev1ac.KeyToPath().WithKey(key).WithPath(pathInVolume(file))
}

// pathInVolume returns the path of a file in the volume that is mounted at contract.Root.
func pathInVolume(file string) string { return strings.TrimPrefix(file, contract.Root+"/") }

// serveFiles returns the files of the command `relay serve`.
func serveFiles(in Input) *corev1ac.ProjectedVolumeSourceApplyConfiguration {
	var f files
	spec := &in.Pool.Spec
	f.shared(in.Pool)
	if len(spec.ViewingKeys.Messages) > 0 {
		f.configMap(in.Pool.Name, path.Base(contract.SignInMessagesFile), contract.SignInMessagesFile)
	}
	if from := spec.Pool.Profile.ConfigMapRef; from != nil {
		f.configMap(from.Name, from.Key, contract.ProfileFile)
	}
	f.configMap(spec.Pool.VerifyingKeyConfigMapRef.Name, spec.Pool.VerifyingKeyConfigMapRef.Key, contract.VerifyingKeyFile)
	if swap := spec.Swap; swap != nil {
		f.secretKey(swap.Router.URLSecretRef, contract.RouterURLFile)
		f.secretKey(swap.Router.APIKeySecretRef, contract.RouterAPIKeyFile)
		f.certificates(swap.Router.CAFrom, contract.RouterCAFile)
		f.fallbackRouters(in.Pool.Name, swap.FallbackRouters)
	}
	f.secretKey(spec.API.KeysSecretRef, contract.APIKeysFile)
	f.payers(in.Payers)
	f.signers(in.Pool.Name, spec.FeePayers.Signers)
	return f.volume()
}

// shared adds the files that every relay command needs to reach the database and the chain.
func (f *files) shared(pool *v1alpha1.RelayPool) {
	f.configMap(pool.Name, path.Base(contract.EndpointsFile), contract.EndpointsFile)
	database := &pool.Spec.Database
	f.secretKey(&database.URLSecretRef, contract.DatabaseURLFile)
	f.certificates(database.CAFrom, contract.DatabaseCAFile)
	if from := database.ClientCertificateSecretRef; from != nil {
		f.secret(from.Name, corev1.TLSCertKey, contract.DatabaseClientCertFile)
		f.secret(from.Name, corev1.TLSPrivateKeyKey, contract.DatabaseClientKeyFile)
	}
	for _, e := range pool.Spec.Solana.Endpoints {
		f.secretKey(e.URLSecretRef, contract.EndpointURLFile(e.Name))
		f.certificates(e.CAFrom, contract.EndpointCAFile(e.Name))
	}
}

func (f *files) fallbackRouters(configMap string, routers []v1alpha1.FallbackRouter) {
	if len(routers) > 0 {
		f.configMap(configMap, path.Base(contract.FallbackRoutersFile), contract.FallbackRoutersFile)
	}
	for i := range routers {
		f.secretKey(routers[i].URLSecretRef, contract.FallbackRouterURLFile(routers[i].Name))
		f.secretKey(routers[i].APIKeySecretRef, contract.FallbackRouterAPIKeyFile(routers[i].Name))
		f.certificates(routers[i].CAFrom, contract.FallbackRouterCAFile(routers[i].Name))
	}
}

func (f *files) payers(mounts []PayerMount) {
	for _, m := range sorted(mounts) {
		f.secret(m.Secret, m.Key, contract.PayerFile(m.Secret, m.Key))
	}
}

// payerFiles returns the paths of the payers' keys in the pod.
func payerFiles(mounts []PayerMount) []string {
	var paths []string
	for _, m := range sorted(mounts) {
		paths = append(paths, contract.PayerFile(m.Secret, m.Key))
	}
	return paths
}

// sorted returns the mounts, sorted by name and without repetitions. So the given order has no
// effect, and no path is mounted twice.
func sorted(mounts []PayerMount) []PayerMount {
	s := slices.SortedFunc(slices.Values(mounts), func(a, b PayerMount) int {
		return cmp.Or(strings.Compare(a.Secret, b.Secret), strings.Compare(a.Key, b.Key))
	})
	return slices.Compact(s)
}
