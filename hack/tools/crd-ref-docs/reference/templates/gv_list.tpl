{{- define "gvList" -}}
<!-- Generated from api/v1alpha1 by make generate. Do not edit. -->

# The RelayPool resource

Every field of `relaypool.dev/v1alpha1`, as `kubectl explain relaypool.spec --recursive`
tells it too. [config/samples](../config/samples) has resources to start from; the
API server refuses whatever breaks a rule below, with the message that the rule
has here. What the conditions and their reasons mean is in [conditions](conditions/README.md).
{{ range . }}
{{- template "gvDetails" . -}}
{{ end -}}
{{- end -}}
