{{/* What a schema cannot say. */}}
{{- define "relaypool.validate" -}}
{{- if and (not .Values.leaderElection.enabled) (gt (include "relaypool.replicas" . | int) 1) -}}
{{- fail (printf "leaderElection.enabled is false, and operator.replicas is %s: two operators would work against each other. Turn leader election on, or take one replica." (include "relaypool.replicas" .)) -}}
{{- end -}}
{{- include "relaypool.validateReach" . -}}
{{- include "relaypool.validateExtras" . -}}
{{- include "relaypool.validatePools" . -}}
{{- include "relaypool.validateMonitoring" . -}}
{{- include "relaypool.validateExternalMetrics" . -}}
{{- include "relaypool.validateOperators" . -}}
{{- end -}}

{{/*
Two operators with a Lease each would roll a fleet back and forth between their relays.
Whoever makes roles that list Deployments may list them; who makes none may not be able
to, and is to install all the same. One with no replicas acts on nothing.
*/}}
{{- define "relaypool.validateOperators" -}}
{{- if .Values.rbac.create -}}
{{- range (lookup "apps/v1" "Deployment" "" "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $same := and (eq .metadata.namespace $.Release.Namespace) (eq .metadata.name (include "relaypool.fullname" $)) -}}
{{- if and (eq (get $labels "app.kubernetes.io/name") "relaypool-operator") .spec.replicas (not $same) (not (include "relaypool.isOwn" (list $ .))) -}}
{{- $shared := include "relaypool.shared" (list $ .) -}}
{{- if $shared -}}
{{- fail (printf "the operator %s/%s looks after RelayPools of %s already, and this one would, too: they would roll each other's fleets back and forth. Give each of them namespaces of its own (the value namespaces), or take the other away first: fleets go on without an operator." .metadata.namespace .metadata.name $shared) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Of (list root deployment): in words, the namespaces that an operator has together with this one. */}}
{{- define "relaypool.shared" -}}
{{- $ours := (index . 0).Values.namespaces -}}
{{- $theirs := list -}}
{{- range (index . 1).spec.template.spec.containers -}}
{{- range .env -}}
{{- if eq .name "RELAYPOOL_NAMESPACES" -}}
{{- $theirs = splitList "," (.value | default "") | compact -}}
{{- end -}}
{{- end -}}
{{- range .args -}}
{{- if hasPrefix "--namespaces=" . -}}
{{- $theirs = splitList "," (trimPrefix "--namespaces=" .) | compact -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not (or $ours $theirs) -}}
the whole cluster
{{- else if not $ours -}}
{{ join ", " $theirs }}
{{- else if not $theirs -}}
{{ join ", " $ours }}
{{- else -}}
{{- $both := list -}}
{{- range $ours -}}
{{- if has . $theirs }}{{ $both = append $both . }}{{ end -}}
{{- end -}}
{{ join ", " $both }}
{{- end -}}
{{- end -}}

{{/* Rights to all of a cluster are given by nobody who has not said so. */}}
{{- define "relaypool.validateReach" -}}
{{- if and (not .Values.namespaces) (not .Values.clusterWide) -}}
{{- fail (printf "neither namespaces nor clusterWide is set. Name the namespaces whose RelayPools the operator looks after, for instance --set 'namespaces={%s}': it gets rights in these alone. Or set clusterWide to true, for all of the cluster: whoever steals the operator's token is then its administrator." .Release.Namespace) -}}
{{- end -}}
{{- if and .Values.namespaces .Values.clusterWide -}}
{{- fail (printf "clusterWide is true, and namespaces has %s: the operator looks after these or after all of the cluster. Leave one of the two out." (join ", " .Values.namespaces)) -}}
{{- end -}}
{{- if and .Values.tenants.usable (not .Values.tenants.requireLabel) -}}
{{- fail (printf "tenants.usable has %s, but tenants.requireLabel is false, so that RelayPools may use every Secret of their namespaces. Set requireLabel to true, or leave usable out." (join ", " .Values.tenants.usable)) -}}
{{- end -}}
{{- end -}}

{{/*
A setting that values make has roles, ports or a Lease that go with it. A flag would win
over it, and a variable that is there twice be refused.
*/}}
{{- define "relaypool.validateExtras" -}}
{{- range .Values.operator.extraEnv -}}
{{- if hasPrefix "RELAYPOOL_" .name -}}
{{- fail (printf "operator.extraEnv has %s: variables of the operator itself come from its values. Set the value, or where there is none the flag in operator.extraArgs." .name) -}}
{{- end -}}
{{- end -}}
{{- $taken := list "namespaces" "cluster-wide" "leader-elect" "lease-name" "operator-namespace" -}}
{{- range include "relaypool.environment" . | fromYamlArray -}}
{{- $taken = append $taken (trimPrefix "RELAYPOOL_" .name | lower | replace "_" "-") -}}
{{- end -}}
{{- range .Values.operator.extraArgs -}}
{{- $flag := trimPrefix "--" . | splitList "=" | first -}}
{{- if has $flag $taken -}}
{{- fail (printf "operator.extraArgs has --%s, which other values set, together with what goes with it. Set these." $flag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "relaypool.validatePools" -}}
{{- range $name, $pool := .Values.relayPools -}}
{{- $namespace := $pool.namespace | default $.Release.Namespace -}}
{{- if and $.Values.namespaces (not (has $namespace $.Values.namespaces)) -}}
{{- fail (printf "relayPools.%s is in namespace %s, which the operator would not look at: namespaces has only %s. Set relayPools.%s.namespace to one of them, or add it to namespaces." $name $namespace (join ", " $.Values.namespaces) $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A cluster has one server of external metrics. */}}
{{- define "relaypool.validateExternalMetrics" -}}
{{- if .Values.externalMetrics.enabled -}}
{{- $owner := include "relaypool.otherAdapter" . -}}
{{- if $owner -}}
{{- fail (printf "externalMetrics.enabled is true, but %s serves external.metrics.k8s.io in this cluster, and there can be one only (APIService v1beta1.external.metrics.k8s.io). Either set externalMetrics.enabled to false, and scale by that one or by KEDA, or remove the other first." $owner) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Whose the external metrics are, in words, where they are somebody else's. This release's
own lead to a Service of another name while its objects are being renamed.
*/}}
{{- define "relaypool.otherAdapter" -}}
{{- $live := lookup "apiregistration.k8s.io/v1" "APIService" "" "v1beta1.external.metrics.k8s.io" -}}
{{- if $live -}}
{{- $service := dig "spec" "service" dict $live | default dict -}}
{{- $named := eq (get $service "name") (include "relaypool.externalMetrics" .) -}}
{{- if not (and (eq (get $service "namespace") .Release.Namespace) (or $named (include "relaypool.isOwn" (list . $live)))) -}}
{{- if $service -}}
the Service {{ get $service "namespace" }}/{{ get $service "name" }}
{{- else -}}
the API server itself
{{- end -}}
{{- with dig "metadata" "annotations" "meta.helm.sh/release-name" "" $live }} of the Helm release {{ . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Of (list root live): something where an object of the cluster is this release's. */}}
{{- define "relaypool.isOwn" -}}
{{- $root := index . 0 -}}
{{- $annotations := dig "metadata" "annotations" dict (index . 1) | default dict -}}
{{- if and (eq (get $annotations "meta.helm.sh/release-name") $root.Release.Name) (eq (get $annotations "meta.helm.sh/release-namespace") $root.Release.Namespace) -}}
own
{{- end -}}
{{- end -}}

{{/*
Of (list root crd live): nothing, or a refusal where this Helm cannot apply the
definition to the one that is there: Helm 3 only creates, as does Helm 4 with releases
of Helm 3, and what kubectl has written conflicts.
*/}}
{{- define "relaypool.canApplyDefinition" -}}
{{- $root := index . 0 -}}
{{- $crd := index . 1 -}}
{{- $why := "" -}}
{{- if semverCompare "<4.0.0-0" $root.Capabilities.HelmVersion.Version -}}
{{- $why = printf "Helm %s cannot apply it to one that is there" $root.Capabilities.HelmVersion.Version -}}
{{- end -}}
{{- range dig "metadata" "managedFields" list (index . 2) -}}
{{- if and (not .subresource) (or (ne .operation "Apply") (hasPrefix "kubectl" .manager)) -}}
{{- $why = printf "the one that is there was written by %s (%s), and not by Helm's server-side apply" .manager .operation -}}
{{- end -}}
{{- end -}}
{{- if $why -}}
{{- fail (printf "this chart brings another definition of %s, and %s. Apply it by hand, and upgrade again: helm show crds CHART | kubectl apply --server-side --force-conflicts -f -" $crd.metadata.name $why) -}}
{{- end -}}
{{- end -}}

{{/*
Without metrics there is nothing to monitor, and an alert on their absence would fire
for ever. What a cluster lacks is known only where one is asked.
*/}}
{{- define "relaypool.validateMonitoring" -}}
{{- if not .Values.operator.metrics.enabled -}}
{{- range $value := list "serviceMonitor" "prometheusRule" -}}
{{- if (get $.Values.monitoring $value).enabled -}}
{{- fail (printf "monitoring.%s.enabled is true, but operator.metrics.enabled is false: there would be nothing to scrape, and the alert RelaypoolOperatorAbsent would fire for ever. Turn the operator's metrics on, or set monitoring.%s.enabled to false." $value $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if .Capabilities.APIVersions.Has "apiregistration.k8s.io/v1" -}}
{{- range $value, $kind := dict "serviceMonitor" "ServiceMonitor" "prometheusRule" "PrometheusRule" -}}
{{- if (get $.Values.monitoring $value).enabled -}}
{{- if not ($.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" $kind)) -}}
{{- fail (printf "monitoring.%s.enabled is true, but this cluster has no %s. Install the Prometheus operator first (its definitions are enough), or set monitoring.%s.enabled to false." $value $kind $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
