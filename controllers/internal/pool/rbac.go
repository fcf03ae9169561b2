package pool

// These are the operator's permissions, in alphabetical order, so that none is listed
// twice. Secrets are never listed, watched, updated or deleted, so no key is ever lost.
// The operator deletes no objects of a kind that every fleet has, and does not watch kinds
// that a cluster may lack. relaypools/finalizers lets the operator set blockOwnerDeletion in
// owned objects; only some API servers check this permission.
//
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create;get;list;patch;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create;get;patch
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=create;get;list;patch;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;get;list;patch;watch
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=create;delete;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=create;delete;get;list;patch
// +kubebuilder:rbac:groups=keda.sh,resources=scaledobjects,verbs=create;delete;get;list;patch
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=podmonitors;prometheusrules,verbs=create;delete;get;list;patch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=create;get;list;patch;watch
// +kubebuilder:rbac:groups=relaypool.dev,resources=relaypools,verbs=list;patch;watch
// +kubebuilder:rbac:groups=relaypool.dev,resources=relaypools/finalizers,verbs=update
// +kubebuilder:rbac:groups=relaypool.dev,resources=relaypools/status,verbs=update
