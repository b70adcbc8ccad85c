{{/* Labels that never change: what selects pods. Takes (list root component). */}}
{{- define "gputally.selector" -}}
{{- $root := first . -}}
app.kubernetes.io/name: {{ include "gputally.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ last . }}
{{- end }}

{{/* Labels of an object of a component. Takes (list root component). */}}
{{- define "gputally.labels" -}}
{{- $root := first . -}}
{{ include "gputally.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: gputally
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The same as a flag of the aggregator. */}}
{{- define "gputally.agentSelector" -}}
{{- $pairs := list }}
{{- range $key, $value := include "gputally.selector" (list . "agent") | fromYaml }}
  {{- $pairs = append $pairs (printf "%s=%s" $key $value) }}
{{- end }}
{{- join "," $pairs }}
{{- end }}
