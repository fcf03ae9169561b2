package contract

// Default ports of the operator.
const (
	// OperatorMetricsPort serves the operator's own metrics, at MetricsPath.
	OperatorMetricsPort = 8443
	// OperatorHealthPort serves the operator's probes, at LivenessPath and ReadinessPath.
	OperatorHealthPort = 8081
	// OperatorExternalMetricsPort serves the external metrics API, if that is enabled.
	OperatorExternalMetricsPort = 6443
)

// Names of the external metrics API of the operator in a cluster.
const (
	// ExternalMetricsAPIService is the name of the APIService that registers a server of
	// external metrics. Because the name is fixed, a cluster has only one such server.
	ExternalMetricsAPIService = "v1beta1.external.metrics.k8s.io"
	// OperatorExternalMetrics is the default name of the Service that leads to the operator,
	// and of the Secret with the operator's certificate for this API.
	OperatorExternalMetrics = "relaypool-operator-external-metrics"
)

const (
	// OperatorLease is the default name of the Lease for leader election.
	OperatorLease = "relaypool-operator"
	// OperatorSystemNamespace is where the manifests install the operator.
	OperatorSystemNamespace = "relaypool-system"
)

// Names of the environment variables that `operator run` reads, in addition to EnvLogLevel
// and EnvLogFormat. A flag takes precedence over the variable with the same meaning.
const (
	OperatorEnvKubeconfig           = "RELAYPOOL_KUBECONFIG"
	OperatorEnvContext              = "RELAYPOOL_CONTEXT"
	OperatorEnvRelayImage           = "RELAYPOOL_RELAY_IMAGE"
	OperatorEnvNamespaces           = "RELAYPOOL_NAMESPACES"
	OperatorEnvClusterWide          = "RELAYPOOL_CLUSTER_WIDE"
	OperatorEnvTenantImages         = "RELAYPOOL_TENANT_IMAGES"
	OperatorEnvTenantTemplateFields = "RELAYPOOL_TENANT_TEMPLATE_FIELDS"
	OperatorEnvTenantAPIFields      = "RELAYPOOL_TENANT_API_FIELDS"
	OperatorEnvTenantRequireLabel   = "RELAYPOOL_TENANT_REQUIRE_LABEL"
	OperatorEnvTenantUsable         = "RELAYPOOL_TENANT_USABLE"
	OperatorEnvOperatorNamespace    = "RELAYPOOL_OPERATOR_NAMESPACE"
	OperatorEnvConcurrentReconciles = "RELAYPOOL_CONCURRENT_RECONCILES"
	OperatorEnvCheckWorkers         = "RELAYPOOL_CHECK_WORKERS"
	OperatorEnvRefsInterval         = "RELAYPOOL_REFS_INTERVAL"
	OperatorEnvResync               = "RELAYPOOL_RESYNC"
	OperatorEnvMetricsListen        = "RELAYPOOL_METRICS_LISTEN"
	OperatorEnvMetricsCertDir       = "RELAYPOOL_METRICS_CERT_DIR"
	OperatorEnvHealthListen         = "RELAYPOOL_HEALTH_LISTEN"
	OperatorEnvExternalListen       = "RELAYPOOL_EXTERNAL_METRICS_LISTEN"
	OperatorEnvExternalService      = "RELAYPOOL_EXTERNAL_METRICS_SERVICE"
	OperatorEnvExternalSecret       = "RELAYPOOL_EXTERNAL_METRICS_SECRET" //nolint:gosec // G101: the name of a variable with a Secret's name
	OperatorEnvLeaderElect          = "RELAYPOOL_LEADER_ELECT"
	OperatorEnvLeaseName            = "RELAYPOOL_LEASE_NAME"
	OperatorEnvLeaseDuration        = "RELAYPOOL_LEASE_DURATION"
	OperatorEnvLeaseRenewDeadline   = "RELAYPOOL_LEASE_RENEW_DEADLINE"
	OperatorEnvLeaseRetryPeriod     = "RELAYPOOL_LEASE_RETRY_PERIOD"
)

// OperatorEnvironmentVariables lists every variable of `operator run`.
func OperatorEnvironmentVariables() []string {
	return []string{
		OperatorEnvConcurrentReconciles, OperatorEnvCheckWorkers, OperatorEnvRefsInterval, OperatorEnvResync,
		OperatorEnvKubeconfig, OperatorEnvContext, OperatorEnvRelayImage, OperatorEnvNamespaces, OperatorEnvClusterWide, OperatorEnvOperatorNamespace,
		OperatorEnvTenantImages, OperatorEnvTenantTemplateFields, OperatorEnvTenantAPIFields, OperatorEnvTenantRequireLabel, OperatorEnvTenantUsable,
		OperatorEnvMetricsListen, OperatorEnvMetricsCertDir, OperatorEnvHealthListen,
		OperatorEnvExternalListen, OperatorEnvExternalService, OperatorEnvExternalSecret,
		OperatorEnvLeaderElect, OperatorEnvLeaseName, OperatorEnvLeaseDuration, OperatorEnvLeaseRenewDeadline, OperatorEnvLeaseRetryPeriod,
		EnvLogLevel, EnvLogFormat,
	}
}
