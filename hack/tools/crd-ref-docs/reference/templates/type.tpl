{{- define "type" -}}
{{- $type := . -}}
{{- if markdownShouldRenderType $type }}
## {{ $type.Name }}

{{ $type.Doc }}
{{ if $type.References }}
Used by {{ range $i, $user := $type.SortedReferences }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $user }}{{ end }}.
{{ end -}}
{{- $oneOf := index $type.Markers "kubebuilder:validation:ExactlyOneOf" -}}
{{- $rules := index $type.Markers "kubebuilder:validation:XValidation" -}}
{{- if or $oneOf $rules }}
Rules:

{{ range $oneOf }}- exactly one of {{ range $i, $field := . }}{{ if $i }} and {{ end }}`{{ $field }}`{{ end }} is set
{{ end -}}
{{ range $rules }}- {{ .Message }}
{{ end -}}
{{ end -}}
{{- if $type.Members }}
| field | type | meaning | limits |
| --- | --- | --- | --- |
{{ if $type.GVK -}}
| `apiVersion` | string | `{{ $type.GVK.Group }}/{{ $type.GVK.Version }}` | required |
| `kind` | string | `{{ $type.GVK.Kind }}` | required |
{{ end -}}
{{ range $type.Members -}}
| `{{ .Name }}` | {{ markdownRenderType .Type }} | {{ template "type_members" . }} | {{ template "limits" . }} |
{{ end -}}
{{ end -}}
{{- if $type.EnumValues }}
| value | meaning |
| --- | --- |
{{ range $type.EnumValues -}}
| `{{ .Name }}` | {{ regexReplaceAll "^[A-Za-z]+:? " .Doc "" | replace "\n" " " | trim | markdownRenderFieldDoc }} |
{{ end -}}
{{ end -}}
{{ end -}}
{{- end -}}
