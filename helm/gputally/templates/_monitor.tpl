{{/* One endpoint of a monitor, without relabelling. Takes (list monitor web). */}}
{{- define "gputally.endpoint" -}}
{{- $monitor := first . -}}
port: metrics
path: /metrics
scheme: {{ default (include "gputally.scheme" (last .)) $monitor.scheme | lower }}
# Series of containers name the pod that was measured. Otherwise the scraped one would take its place.
honorLabels: true
{{- range $field := list "interval" "scrapeTimeout" }}
{{- with index $monitor $field }}
{{ $field }}: {{ . }}
{{- end }}
{{- end }}
{{- range $field := list "tlsConfig" "basicAuth" "authorization" "metricRelabelings" }}
{{- with index $monitor $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* What comes after the chart's own relabelling. Takes (list root monitor). */}}
{{- define "gputally.relabelings" -}}
{{- with (first .).Values.clusterName }}
- {targetLabel: cluster, replacement: {{ . | quote }}}
{{- end }}
{{- with (last .).relabelings }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels and annotations of a monitor or rule. Takes (list root component values). */}}
{{- define "gputally.monitorMetadata" -}}
{{- $root := first . }}
{{- $values := last . -}}
labels:
  {{- include "gputally.labels" (list $root (index . 1)) | nindent 2 }}
  {{- with $values.additionalLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
