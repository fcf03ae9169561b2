{{/* What works otherwise than one may think, in this cluster, with these values. */}}
{{- define "relaypool.warnings" -}}
{{- $live := .Capabilities.APIVersions.Has "apiregistration.k8s.io/v1" -}}
{{- /* Who may make no roles may not look either, and is to be able to install. */ -}}
{{- if and .Values.rbac.create (not .Values.externalMetrics.enabled) -}}
{{- $owner := include "relaypool.otherAdapter" . -}}
{{- if $owner }}
NOTE: {{ $owner }}
serves external metrics in this cluster. A RelayPool with autoscaling.provider HPA scales
by it once it has the metric relaypool_backlog_submissions.
{{ end -}}
{{- end -}}
{{- $monitoring := .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" -}}
{{- if and $live $monitoring (not .Values.monitoring.serviceMonitor.enabled) .Values.operator.metrics.enabled }}
NOTE: the Prometheus operator is here, and does not scrape this operator:
monitoring.serviceMonitor.enabled and monitoring.prometheusRule.enabled have it do so.
{{ end -}}
{{- if and .Values.monitoring.prometheusRule.enabled (not .Values.monitoring.serviceMonitor.enabled) }}
NOTE: monitoring.serviceMonitor.enabled is false. Until something else scrapes the operator,
the alert RelaypoolOperatorAbsent of monitoring.prometheusRule fires.
{{ end -}}
{{- if .Values.monitoring.serviceMonitor.enabled }}
{{- include "relaypool.mayScrape" . }}
{{- end -}}
{{- if not .Values.rbac.create }}
WARNING: rbac.create is false. Without the roles of config/rbac, bound to the service
account {{ .Release.Namespace }}/{{ include "relaypool.serviceAccount" . }}, the operator can do nothing.
{{ end -}}
{{- if not .Values.crds.upgrade }}
NOTE: crds.upgrade is false. Before each upgrade:
helm show crds CHART | kubectl apply --server-side -f -
{{ end -}}
{{- end -}}

{{/* What Prometheus needs to be let in: without the role it gets 403, without the labels nothing. */}}
{{- define "relaypool.mayScrape" -}}
{{- $role := printf "%s-metrics-reader" (include "relaypool.fullname" .) }}
NOTE: whoever scrapes the operator has to be let in. With the service account and the
namespace of your Prometheus:

{{- if .Values.rbac.create }}

    kubectl create clusterrolebinding {{ $role }} --clusterrole={{ $role }} --serviceaccount=NAMESPACE:NAME
{{- else }}

    kubectl create clusterrole {{ $role }} --verb=get --non-resource-url=/metrics
    kubectl create clusterrolebinding {{ $role }} --clusterrole={{ $role }} --serviceaccount=NAMESPACE:NAME
{{- end }}
{{- if .Values.networkPolicy.enabled }}
    kubectl label namespace NAMESPACE
    {{- range $key, $value := .Values.networkPolicy.metricsNamespaceLabels }} {{ $key }}={{ $value }}{{ end }}
{{- end }}
{{ end -}}
