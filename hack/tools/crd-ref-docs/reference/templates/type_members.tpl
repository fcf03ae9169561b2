{{- define "type_members" -}}
{{- if eq .Name "metadata" -}}
Name, namespace, labels and annotations, as of any resource.
{{- else -}}
{{ .Doc | replace "\n" " " | markdownRenderFieldDoc }}
{{- end -}}
{{- end -}}
