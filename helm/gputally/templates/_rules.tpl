{{/* What each placeholder `@name@` of the rule files stands for: by the values, else by the defaults of the alerts. */}}
{{- define "gputally.alertTerms" -}}
{{- $rule := .Values.prometheusRule }}
{{- $defaults := .Files.Get "files/alerts.yaml" | fromYaml }}
{{- $objective := merge (deepCopy $rule.objective) $defaults.objective }}
{{- $found := dict
      "runbooks" (default $defaults.runbooks $rule.runbooks)
      "grafana" (default $defaults.grafana (trimSuffix "/" $rule.grafana))
      "hardware.xids" (default $defaults.hardware_xids $rule.hardwareXids)
      "objective.seconds" ($objective.seconds | toString)
      "objective.share" ($objective.share | toString)
      "objective.allowed" (round (subf 1.0 $objective.share) 9 | toString) }}
{{- range $name, $_ := $rule.alerts }}
  {{- if not (hasKey $defaults.alerts $name) }}
    {{- fail (printf "prometheusRule.alerts.%s: there is no such alert; there are %s" $name (keys $defaults.alerts | sortAlpha | join ", ")) }}
  {{- end }}
{{- end }}
{{- range $name, $stated := $defaults.alerts }}
  {{- $own := default dict (get $rule.alerts $name) }}
  {{- range $term, $_ := omit $own "enabled" "labels" }}
    {{- if not (hasKey $stated $term) }}
      {{- fail (printf "prometheusRule.alerts.%s.%s: there is no such field; there are enabled, labels, %s" $name $term (keys $stated | sortAlpha | join ", ")) }}
    {{- end }}
  {{- end }}
  {{- range $term, $value := merge (omit $own "enabled" "labels") $stated }}
    {{- $_ := set $found (printf "%s.%s" $name $term) ($value | toString) }}
  {{- end }}
{{- end }}
{{- toYaml $found }}
{{- end }}

{{/* A rule file with its placeholders replaced. Takes (list text terms). */}}
{{- define "gputally.filledRules" -}}
{{- $text := first . }}
{{- range $name, $value := last . }}
  {{- $text = replace (printf "@%s@" $name) $value $text }}
{{- end }}
{{- $text }}
{{- end }}

{{/* The rules that are enabled, with the labels of the values. Takes (list prometheusRule rules). */}}
{{- define "gputally.chosenRules" -}}
{{- $rule := first . }}
{{- $chosen := list }}
{{- range last . }}
  {{- $own := default dict (get $rule.alerts (default "" .alert)) }}
  {{- if not (eq (toString $own.enabled) "false") }}
    {{- $each := . }}
    {{- if .alert }}
      {{- $_ := set $each "labels" (merge (deepCopy (default dict $own.labels)) $rule.alertLabels .labels) }}
      {{- if eq (default "" (get . "for")) "0s" }}{{ $each = omit $each "for" }}{{ end }}
    {{- end }}
    {{- $chosen = append $chosen $each }}
  {{- end }}
{{- end }}
{{- toYaml $chosen }}
{{- end }}
