{{/* Whether the configuration says what resources weigh, which is the agents' affair too. */}}
{{- define "gputally.weights" -}}
{{- with pick .Values.configuration "mig" "resources" }}
{{- toYaml . }}
{{- end }}
{{- end }}

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
