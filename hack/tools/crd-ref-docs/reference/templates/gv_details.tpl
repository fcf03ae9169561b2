{{- define "gvDetails" -}}
{{- $gv := . -}}
{{- $first := list "RelayPool" "RelayPoolSpec" "RelayPoolStatus" -}}
{{- range $name := $first -}}{{- range $gv.SortedTypes -}}{{- if eq .Name $name -}}{{ template "type" . }}{{- end -}}{{- end -}}{{- end -}}
{{- range $gv.SortedTypes -}}{{- if not (has .Name $first) -}}{{ template "type" . }}{{- end -}}{{- end -}}
{{- end -}}
