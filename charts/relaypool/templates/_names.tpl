{{/* What objects of the release begin with: relaypool in the release relaypool. */}}
{{- define "relaypool.base" -}}
{{- if .Values.fullnameOverride -}}
{{- trimSuffix "-operator" .Values.fullnameOverride -}}
{{- else -}}
{{- $name := .Values.nameOverride | default "relaypool" -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 34 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" (.Release.Name | trunc (sub 33 (len $name) | int) | trimSuffix "-") $name -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The operator's name. With the longest suffix, -external-metrics-reader, it has to stay below 63. */}}
{{- define "relaypool.fullname" -}}
{{- .Values.fullnameOverride | default (printf "%s-operator" (include "relaypool.base" .)) -}}
{{- end -}}

{{- define "relaypool.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "relaypool.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "relaypool.lease" -}}
{{- .Values.leaderElection.leaseName | default (include "relaypool.fullname" .) -}}
{{- end -}}

{{- define "relaypool.externalMetrics" -}}
{{ include "relaypool.fullname" . }}-external-metrics
{{- end -}}

{{/* The operator's own name in labels is always the same: fleets' network policies admit it by it. */}}
{{- define "relaypool.selectorLabels" -}}
app.kubernetes.io/name: relaypool-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "relaypool.labels" -}}
{{ include "relaypool.labelsWith" (list . dict) }}
{{- end -}}

{{/* Of (list root more): labels of one of the operator's objects, and more of its own. */}}
{{- define "relaypool.labelsWith" -}}
{{- $root := index . 0 -}}
{{ include "relaypool.selectorLabels" $root }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
{{ include "relaypool.releaseLabels" . }}
{{- end -}}

{{/* Of (list root more): what says which release something is of, for what is not the operator. */}}
{{- define "relaypool.releaseLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/part-of: relaypool
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- range $key, $value := merge (dict) (index . 1) $root.Values.extraLabels }}
{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* Of (list root image): a reference by digest, else by tag. */}}
{{- define "relaypool.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- printf "%s/%s" ($root.Values.imageRegistry | default $image.registry) $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default $root.Chart.AppVersion }}{{ end -}}
{{- end -}}

{{- define "relaypool.replicas" -}}
{{- if kindIs "invalid" .Values.operator.replicas -}}
{{- ternary 2 1 .Values.externalMetrics.enabled -}}
{{- else -}}
{{- int .Values.operator.replicas -}}
{{- end -}}
{{- end -}}

{{/* A document of this version. */}}
{{- define "relaypool.document" -}}
{{ (index . 0).Chart.Home }}/blob/v{{ (index . 0).Chart.AppVersion }}/{{ index . 1 }}
{{- end -}}
