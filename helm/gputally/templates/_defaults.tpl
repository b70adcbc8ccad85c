{{/*
Puts defaults of this chart into .Values where they are missing. `helm upgrade --reuse-values` keeps the values of the
chart before, which knows nothing of what was added since. Two levels deep and no deeper: below, a key that is missing
may be one that its user removed with null, such as a label of a nodeSelector.
*/}}
{{- define "gputally.defaults" -}}
{{- range $section, $defaults := .Files.Get "files/values.yaml" | fromYaml }}
  {{- if not (hasKey $.Values $section) }}
    {{- $_ := set $.Values $section $defaults }}
  {{- else if kindIs "map" $defaults }}
    {{- range $key, $default := $defaults }}
      {{- if not (hasKey (index $.Values $section) $key) }}
        {{- $_ := set (index $.Values $section) $key $default }}
      {{- end }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}
