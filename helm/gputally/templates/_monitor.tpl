{{/* One endpoint of a monitor, without relabelling. Takes (list monitor web path). */}}
{{- define "gputally.endpoint" -}}
{{- $monitor := first . -}}
port: metrics
path: {{ last . }}
scheme: {{ default (include "gputally.scheme" (index . 1)) $monitor.scheme | lower }}
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

{{/* For how long a new series is 0: four scrapes of whoever comes, and no less than by default. */}}
{{- define "gputally.zeroSeconds" -}}
{{- $seconds := 0 }}
{{- range $part := regexFindAll "[0-9]+(ms|s|m|h)" .Values.serviceMonitor.interval -1 }}
{{- $unit := get (dict "ms" 0 "s" 1 "m" 60 "h" 3600) (regexFind "[a-z]+" $part) }}
{{- $seconds = add $seconds (mul $unit (regexFind "[0-9]+" $part)) }}
{{- end }}
{{- if kindIs "invalid" .Values.aggregator.zeroSeconds }}
{{- max 120 (mul 4 $seconds) }}
{{- else }}
{{- int .Values.aggregator.zeroSeconds }}
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
  {{- with merge (deepCopy $values.additionalLabels) $root.Values.prometheusOperator.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A ServiceMonitor of the aggregator. Takes (list root monitor name path). */}}
{{- define "gputally.serviceMonitor" -}}
{{- $root := first . }}
{{- $monitor := index . 1 }}
{{- $path := last . -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ index . 2 }}
  namespace: {{ include "gputally.namespace" $root }}
  {{- include "gputally.monitorMetadata" (list $root "aggregator" $monitor) | nindent 2 }}
spec:
  selector:
    matchLabels:
      {{- include "gputally.selector" (list $root "aggregator") | nindent 6 }}
  namespaceSelector:
    matchNames: [{{ include "gputally.namespace" $root }}]
  {{- with $monitor.sampleLimit }}
  sampleLimit: {{ int64 . }}
  {{- end }}
  endpoints:
    - {{ include "gputally.endpoint" (list $monitor $root.Values.aggregator.web $path) | nindent 6 | trim }}
      relabelings:
        # The same for every pod that comes and goes: counters survive it, and so do their series.
        - {targetLabel: instance, replacement: {{ include "gputally.fullname" $root }}}
        - {action: labeldrop, regex: pod|node|container}
        {{- if ne $path "/metrics" }}
        # Otherwise both endpoints would have the same `up`.
        - {targetLabel: metrics_path, sourceLabels: [__metrics_path__]}
        {{- end }}
        {{- with include "gputally.relabelings" (list $root $monitor) | trim }}
        {{- . | nindent 8 }}
        {{- end }}
{{- end }}
