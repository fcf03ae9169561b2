// Package settings has all settings of the operator: flags and environment in one
// struct, validated as a whole at start.
//
// No setting is a secret: the operator reads endpoints and keys from the Secrets that
// a RelayPool names.
package settings

import (
	"log/slog"
	"strings"
	"time"
)

// Run has the flags of the command `operator run`. The defaults are for a developer's machine:
// the operator listens only on loopback addresses.
type Run struct {
	Cluster `embed:""`

	RelayImage        string   `env:"RELAYPOOL_RELAY_IMAGE" placeholder:"IMAGE" group:"Fleets" help:"Required. Image of the relay for every RelayPool without spec.image, with a tag or a digest: registry.example/relaypool/relay:0.1.0."`
	Namespaces        []string `env:"RELAYPOOL_NAMESPACES" placeholder:"NAMESPACE" group:"Fleets" help:"Namespaces whose RelayPools are managed. Nothing else is read or watched, so Roles in these suffice. Several with commas between them. Required, unless --cluster-wide is given."`
	ClusterWide       bool     `env:"RELAYPOOL_CLUSTER_WIDE" group:"Fleets" help:"Manage the RelayPools of all namespaces, including those that do not exist yet. The rights that this needs make anybody with the operator's token an administrator of the cluster."`
	LeaderElect       bool     `default:"true" env:"RELAYPOOL_LEADER_ELECT" group:"Leading" help:"Act only while holding the Lease, so that several operators can run and one acts. Turn it off with --leader-elect=false only where no other operator runs."`
	OperatorNamespace string   `env:"RELAYPOOL_OPERATOR_NAMESPACE" placeholder:"NAMESPACE" group:"Leading" help:"Namespace that the operator is installed in: its Lease is there, and network policies admit it from there. Empty means the namespace of the pod's service account; outside a cluster it is required while --leader-elect is on."`

	Tenants   Tenants `embed:"" prefix:"tenant-"`
	Work      `embed:""`
	Listening `embed:""`
	External  ExternalMetrics `embed:"" prefix:"external-metrics-"`
	Leading   `embed:"" prefix:"lease-"`
	Logging   `embed:"" prefix:"log-"`

	// EarlierProblems are problems that were found before Load. Load returns them together with
	// the problems that it finds.
	EarlierProblems []error `kong:"-"`
}

// Cluster says how to reach the cluster.
type Cluster struct {
	Kubeconfig string `env:"RELAYPOOL_KUBECONFIG" placeholder:"FILE" group:"Cluster" help:"File with the cluster's address and credentials. Empty uses the file that $KUBECONFIG names, else the pod's own service account, else ~/.kube/config."`
	Context    string `env:"RELAYPOOL_CONTEXT" placeholder:"NAME" group:"Cluster" help:"Context of that file. Empty uses its current one. With a context, the pod's service account is never used."`
}

// Work sets how much is done at once, and how often.
type Work struct {
	ConcurrentReconciles int           `default:"8" env:"RELAYPOOL_CONCURRENT_RECONCILES" placeholder:"NUMBER" group:"Fleets" help:"RelayPools that are worked on at once."`
	CheckWorkers         int           `default:"8" env:"RELAYPOOL_CHECK_WORKERS" placeholder:"NUMBER" group:"Fleets" help:"Number of pools that are read from their chains concurrently. A dead endpoint occupies one of them for some seconds."`
	RefsInterval         time.Duration `default:"1m" env:"RELAYPOOL_REFS_INTERVAL" placeholder:"DURATION" group:"Fleets" help:"How often the Secrets and ConfigMaps that a RelayPool names are read again, give or take a tenth. Nothing tells the operator when they change, because it cannot watch them. Secrets of generated keys do not change, and are read a fifth as often."`
	Resync               time.Duration `default:"10h" env:"RELAYPOOL_RESYNC" placeholder:"DURATION" group:"Fleets" help:"How often every RelayPool is worked on although nothing is known to have changed."`
}

// Listening sets where metrics and probes are served.
type Listening struct {
	MetricsListen  string `default:"127.0.0.1:8443" env:"RELAYPOOL_METRICS_LISTEN" placeholder:"HOST:PORT" group:"Serving" help:"Address that serves /metrics, or none. On a loopback address it is plain HTTP for everybody there; on any other it is HTTPS for those whom the cluster knows and allows to get /metrics."`
	MetricsCertDir string `env:"RELAYPOOL_METRICS_CERT_DIR" placeholder:"FOLDER" group:"Serving" help:"Folder of tls.crt and tls.key for HTTPS, read again when they change. Empty for a self-signed certificate, made anew at each start."`
	HealthListen   string `default:"127.0.0.1:8081" env:"RELAYPOOL_HEALTH_LISTEN" placeholder:"HOST:PORT" group:"Serving" help:"Address that serves /livez and /readyz, or none."`
}

// ExternalMetrics sets where the external metrics API is served, and which Service and Secret it
// uses.
type ExternalMetrics struct {
	Listen  string `default:"none" env:"RELAYPOOL_EXTERNAL_METRICS_LISTEN" placeholder:"HOST:PORT" group:"External metrics" help:"Address that serves the backlog of fleets as Kubernetes' external metrics, or none. It serves HTTPS to those whom the cluster knows and allows to list them. In a pod :6443. Every replica serves. It needs --operator-namespace."`
	Service string `default:"relaypool-operator-external-metrics" env:"RELAYPOOL_EXTERNAL_METRICS_SERVICE" placeholder:"NAME" group:"External metrics" help:"Service in --operator-namespace that leads to that address. The certificate is for its name. The operator that leads keeps the caBundle of the APIService v1beta1.external.metrics.k8s.io, but changes no APIService of another server."`
	Secret  string `default:"relaypool-operator-external-metrics" env:"RELAYPOOL_EXTERNAL_METRICS_SECRET" placeholder:"NAME" group:"External metrics" help:"Secret in --operator-namespace for the serving certificate. The operator makes it, and renews the certificate a month before it expires."`
}

// Enabled reports whether external metrics are served.
func (e ExternalMetrics) Enabled() bool { return e.Listen != None && e.Listen != "" }

// Leading sets how one of several operators becomes the leader.
type Leading struct {
	Name          string        `default:"relaypool-operator" env:"RELAYPOOL_LEASE_NAME" placeholder:"NAME" group:"Leading" help:"Name of the Lease."`
	Duration      time.Duration `default:"15s" env:"RELAYPOOL_LEASE_DURATION" placeholder:"DURATION" group:"Leading" help:"How long the others wait after the leader last renewed its lease before one takes over. A leader that is stopped releases the lease at once."`
	RenewDeadline time.Duration `default:"10s" env:"RELAYPOOL_LEASE_RENEW_DEADLINE" placeholder:"DURATION" group:"Leading" help:"How long a leader that cannot renew tries on before it ends itself. Shorter than --lease-duration."`
	RetryPeriod   time.Duration `default:"2s" env:"RELAYPOOL_LEASE_RETRY_PERIOD" placeholder:"DURATION" group:"Leading" help:"Time between tries to get or renew the Lease. Shorter than --lease-renew-deadline."`
}

// Logging sets how to log.
type Logging struct {
	Level  string `default:"info" env:"RELAYPOOL_LOG_LEVEL" placeholder:"LEVEL" group:"Log" help:"Least level that is logged: debug, info, warn or error."`
	Format string `default:"auto" env:"RELAYPOOL_LOG_FORMAT" placeholder:"FORMAT" group:"Log" help:"json, text, or auto: text on a terminal, else json."`
}

// LogValue returns every flag except those that select the cluster, and nothing of the
// client configuration, which may contain credentials.
func (c *Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("relay_image", c.RelayImage),
		slog.String("namespaces", strings.Join(c.Namespaces, ",")),
		slog.Bool("cluster_wide", c.ClusterWide),
		slog.String("operator_namespace", c.OperatorNamespace),
		slog.String("tenant_images", strings.Join(c.Tenants.Images, ",")),
		slog.String("tenant_template_fields", strings.Join(c.Tenants.TemplateFields, ",")),
		slog.String("tenant_api_fields", strings.Join(c.Tenants.APIFields, ",")),
		slog.Bool("tenant_require_label", c.Tenants.RequireLabel),
		slog.String("tenant_usable", strings.Join(c.Tenants.Usable, ",")),
		slog.Int("concurrent_reconciles", c.ConcurrentReconciles),
		slog.Int("check_workers", c.CheckWorkers),
		slog.String("refs_interval", c.RefsInterval.String()),
		slog.String("resync", c.Resync.String()),
		slog.Bool("leader_elect", c.LeaderElect),
		slog.String("lease_name", c.Leading.Name),
		slog.String("lease_duration", c.Leading.Duration.String()),
		slog.String("lease_renew_deadline", c.Leading.RenewDeadline.String()),
		slog.String("lease_retry_period", c.Leading.RetryPeriod.String()),
		slog.String("metrics_listen", c.MetricsListen),
		slog.String("metrics_cert_dir", c.MetricsCertDir),
		slog.String("health_listen", c.HealthListen),
		slog.String("external_metrics_listen", c.External.Listen),
		slog.String("external_metrics_service", c.External.Service),
		slog.String("external_metrics_secret", c.External.Secret),
		slog.String("log_level", c.Logging.Level),
		slog.String("log_format", c.Logging.Format),
	)
}
