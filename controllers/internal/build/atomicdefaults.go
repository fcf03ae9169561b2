package build

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// tokenSeconds is the API server's default lifetime of projected service account tokens.
const tokenSeconds = 3600

// certificateSeconds is the API server's default of the longest lifetime of pod certificates.
const certificateSeconds = 86400

// setAtomicDefaults sets the API server's defaults in those fields of a pod that server-side apply
// treats as a whole. Without them, the stored field would differ from the built one, and each pass
// would write it again.
func setAtomicDefaults(pod *corev1ac.PodSpecApplyConfiguration) {
	for _, containers := range [][]corev1ac.ContainerApplyConfiguration{pod.InitContainers, pod.Containers} {
		for i := range containers {
			for j := range containers[i].Env {
				if from := containers[i].Env[j].ValueFrom; from != nil {
					setReferenceDefaults(from.FieldRef, from.ResourceFieldRef)
					if file := from.FileKeyRef; file != nil && file.Optional == nil {
						file.WithOptional(false)
					}
				}
			}
		}
	}
	for i := range pod.Volumes {
		v := &pod.Volumes[i]
		if v.DownwardAPI != nil {
			setDownwardDefaults(v.DownwardAPI.Items)
		}
		if v.Projected == nil {
			continue
		}
		for j := range v.Projected.Sources {
			source := &v.Projected.Sources[j]
			if source.DownwardAPI != nil {
				setDownwardDefaults(source.DownwardAPI.Items)
			}
			if token := source.ServiceAccountToken; token != nil && token.ExpirationSeconds == nil {
				token.WithExpirationSeconds(tokenSeconds)
			}
			if certificate := source.PodCertificate; certificate != nil && certificate.MaxExpirationSeconds == nil {
				certificate.WithMaxExpirationSeconds(certificateSeconds)
			}
		}
	}
}

func setDownwardDefaults(files []corev1ac.DownwardAPIVolumeFileApplyConfiguration) {
	for i := range files {
		setReferenceDefaults(files[i].FieldRef, files[i].ResourceFieldRef)
	}
}

func setReferenceDefaults(field *corev1ac.ObjectFieldSelectorApplyConfiguration, of *corev1ac.ResourceFieldSelectorApplyConfiguration) {
	if field != nil && field.APIVersion == nil {
		field.WithAPIVersion(corev1.SchemeGroupVersion.Version)
	}
	if of != nil && of.Divisor == nil {
		of.WithDivisor(resource.Quantity{Format: resource.DecimalSI})
	}
}
