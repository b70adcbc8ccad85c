{{/* Configuration and price book as files, by name. An empty one is not written: the defaults are the program's. */}}
{{- define "gputally.files" -}}
{{- with .Values.configuration }}
config.yaml: |
  {{- toYaml (merge (dict "kind" "Configuration") .) | nindent 2 }}
{{- end }}
{{- with .Values.priceBook }}
prices.yaml: |
  {{- toYaml (merge (dict "kind" "PriceBook") .) | nindent 2 }}
{{- end }}
{{- end }}
