{{- define "limits" -}}
{{- $limits := list -}}
{{- range .Validation -}}
{{- $limit := . -}}
{{- $of := "" -}}
{{- if hasPrefix "items:" $limit -}}{{- $limit = trimPrefix "items:" $limit -}}{{- $of = "each " -}}{{- end -}}
{{- $name := regexFind "^[A-Za-z]+" $limit -}}
{{- $value := regexReplaceAll "^[A-Za-z]+: " $limit "" -}}
{{- if eq $name "Required" -}}{{- $limits = append $limits "required" -}}
{{- else if eq $name "Enum" -}}{{- $limits = append $limits ($value | trimPrefix "[" | trimSuffix "]" | replace " " ", " | printf "one of %s") -}}
{{- else if eq $name "Minimum" -}}{{- $limits = append $limits (printf "%sat least %.0f" $of (float64 $value)) -}}
{{- else if eq $name "Maximum" -}}{{- $limits = append $limits (printf "%sat most %.0f" $of (float64 $value)) -}}
{{- else if eq $name "MinLength" -}}{{- if ne $value "1" -}}{{- $limits = append $limits (printf "%sat least %s characters" $of $value) -}}{{- else -}}{{- $limits = append $limits (printf "%snot empty" $of) -}}{{- end -}}
{{- else if eq $name "MaxLength" -}}{{- $limits = append $limits (printf "%sat most %s characters" $of $value) -}}
{{- else if eq $name "MinItems" -}}{{- if ne $value "1" -}}{{- $limits = append $limits (printf "at least %s entries" $value) -}}{{- else -}}{{- $limits = append $limits "not empty" -}}{{- end -}}
{{- else if eq $name "MaxItems" -}}{{- $limits = append $limits (printf "at most %s entries" $value) -}}
{{- else if eq $name "MaxProperties" -}}{{- $limits = append $limits (printf "at most %s keys" $value) -}}
{{- else if eq $name "Pattern" -}}{{- $limits = append $limits (printf "%smatches %s" $of $value) -}}
{{- end -}}
{{- end -}}
{{- /* The rules of a type of ours stand at the type: here are the field's own. */ -}}
{{- $type := .Type -}}
{{- if eq (printf "%d" $type.Kind) "4" "5" -}}{{- $type = $type.UnderlyingType -}}{{- end -}}
{{- $ofType := list -}}
{{- if $type.Members -}}{{- range index $type.Markers "kubebuilder:validation:XValidation" -}}{{- $ofType = append $ofType .Message -}}{{- end -}}{{- end -}}
{{- range index .Markers "kubebuilder:validation:XValidation" -}}
{{- if not (has .Message $ofType) -}}{{- $limits = append $limits .Message -}}{{- end -}}
{{- end -}}
{{- range $i, $limit := $limits -}}{{- if $i }}; {{ end -}}{{- $limit | replace "|" "\\|" -}}{{- end -}}
{{- end -}}
