{{/*
"true" if a part of monitoring is on: by its value, or with `auto` if the cluster serves the kind.
Takes (list root values kind). `helm template` knows no cluster: pass it `--api-versions monitoring.coreos.com/v1/KIND`.
*/}}
{{- define "gputally.enabled" -}}
{{- $enabled := (index . 1).enabled | toString -}}
{{- if eq $enabled "auto" -}}
{{- if (first .).Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" (last .)) }}true{{ end -}}
{{- else if eq $enabled "true" -}}
true
{{- end -}}
{{- end }}

{{/* Why a part of monitoring is on or off, for the notes. Takes (list root values kind name). */}}
{{- define "gputally.state" -}}
{{- $root := first . }}{{ $values := index . 1 }}{{ $kind := index . 2 }}
{{- $on := include "gputally.enabled" (list $root $values $kind) }}
{{- $auto := eq ($values.enabled | toString) "auto" }}
{{- printf "  %-17s %s" (last .) (ternary "on" "off" (eq $on "true")) }}
{{- if and $auto $on }} (the cluster has {{ $kind }}s of the Prometheus Operator)
{{- else if $auto }} (auto: the cluster has no {{ $kind }}s; install the Prometheus Operator, then upgrade this release)
{{- end }}
{{- end }}

{{/* The API groups whose PodGroups are watched, as a YAML list. */}}
{{- define "gputally.podGroups" -}}
{{- $groups := list }}
{{- if .Values.watch.volcanoPodGroups }}{{ $groups = append $groups "scheduling.volcano.sh" }}{{ end }}
{{- if .Values.watch.coschedulingPodGroups }}{{ $groups = append $groups "scheduling.x-k8s.io" }}{{ end }}
{{- if .Values.watch.corePodGroups }}{{ $groups = append $groups "scheduling.k8s.io" }}{{ end }}
{{- $groups | toYaml }}
{{- end }}

{{/* The optional resources to watch, separated by commas. */}}
{{- define "gputally.watched" -}}
{{- $watched := list }}
{{- if .Values.watch.podDisruptionBudgets }}{{ $watched = append $watched "poddisruptionbudgets" }}{{ end }}
{{- if .Values.watch.resourceQuotas }}{{ $watched = append $watched "resourcequotas" }}{{ end }}
{{- if .Values.watch.failedCreates }}{{ $watched = append $watched "events/FailedCreate" }}{{ end }}
{{- if .Values.watch.kueueWorkloads }}{{ $watched = append $watched "workloads.kueue.x-k8s.io" }}{{ end }}
{{- range (include "gputally.podGroups" . | fromYamlArray) }}{{ $watched = append $watched (printf "podgroups.%s" .) }}{{ end }}
{{- join "," $watched }}
{{- end }}
