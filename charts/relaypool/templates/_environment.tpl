{{/* The operator's settings. What is empty in the values is left to its own default. */}}
{{- define "relaypool.environment" -}}
# The relay of every RelayPool that names no image of its own.
- name: RELAYPOOL_RELAY_IMAGE
  value: {{ include "relaypool.image" (list . .Values.relay.image) | quote }}
- name: RELAYPOOL_METRICS_LISTEN
  value: {{ ternary ":8443" "none" .Values.operator.metrics.enabled | quote }}
- name: RELAYPOOL_HEALTH_LISTEN
  value: ":8081"
{{- if and .Values.operator.metrics.enabled .Values.operator.metrics.certificateSecret }}
- name: RELAYPOOL_METRICS_CERT_DIR
  value: /etc/relaypool/metrics-certificate
{{- end }}
{{- with .Values.namespaces }}
- name: RELAYPOOL_NAMESPACES
  value: {{ join "," . | quote }}
{{- end }}
{{- if .Values.clusterWide }}
- name: RELAYPOOL_CLUSTER_WIDE
  value: "true"
{{- end }}
{{- with .Values.tenants.images }}
- name: RELAYPOOL_TENANT_IMAGES
  value: {{ join "," . | quote }}
{{- end }}
{{- if not (kindIs "invalid" .Values.tenants.templateFields) }}
- name: RELAYPOOL_TENANT_TEMPLATE_FIELDS
  value: {{ join "," .Values.tenants.templateFields | default "none" | quote }}
{{- end }}
{{- if not (kindIs "invalid" .Values.tenants.apiFields) }}
- name: RELAYPOOL_TENANT_API_FIELDS
  value: {{ join "," .Values.tenants.apiFields | default "none" | quote }}
{{- end }}
{{- if .Values.tenants.requireLabel }}
- name: RELAYPOOL_TENANT_REQUIRE_LABEL
  value: "true"
{{- end }}
{{- with .Values.tenants.usable }}
- name: RELAYPOOL_TENANT_USABLE
  value: {{ join "," . | quote }}
{{- end }}
{{- if not .Values.leaderElection.enabled }}
- name: RELAYPOOL_LEADER_ELECT
  value: "false"
{{- end }}
{{- if ne (include "relaypool.lease" .) "relaypool-operator" }}
- name: RELAYPOOL_LEASE_NAME
  value: {{ include "relaypool.lease" . | quote }}
{{- end }}
{{- $settings := dict
  "RELAYPOOL_CONCURRENT_RECONCILES" .Values.operator.concurrentReconciles
  "RELAYPOOL_CHECK_WORKERS" .Values.operator.checkWorkers
  "RELAYPOOL_REFS_INTERVAL" .Values.operator.refsInterval
  "RELAYPOOL_RESYNC" .Values.operator.resync
  "RELAYPOOL_LOG_LEVEL" .Values.operator.log.level
  "RELAYPOOL_LOG_FORMAT" .Values.operator.log.format
  "RELAYPOOL_LEASE_DURATION" .Values.leaderElection.leaseDuration
  "RELAYPOOL_LEASE_RENEW_DEADLINE" .Values.leaderElection.renewDeadline
  "RELAYPOOL_LEASE_RETRY_PERIOD" .Values.leaderElection.retryPeriod
}}
{{- range $name, $value := $settings }}
{{- if $value }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}
{{- if .Values.externalMetrics.enabled }}
- name: RELAYPOOL_EXTERNAL_METRICS_LISTEN
  value: ":6443"
- name: RELAYPOOL_EXTERNAL_METRICS_SERVICE
  value: {{ include "relaypool.externalMetrics" . }}
- name: RELAYPOOL_EXTERNAL_METRICS_SECRET
  value: {{ include "relaypool.externalMetrics" . }}
{{- end }}
{{- end -}}
