{{/* What both pods have: images, who they are, where they run. Takes (list root component). */}}
{{- define "gputally.podSpec" -}}
{{- $root := first . }}
{{- $own := index $root.Values (last .) -}}
{{- with concat $root.Values.global.imagePullSecrets $root.Values.image.pullSecrets | uniq }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
enableServiceLinks: false # variables named after Services look like our own, such as GPUTALLY_AGENT_PORT
terminationGracePeriodSeconds: {{ $own.terminationGracePeriodSeconds }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with index $own $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with $own.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  {{- toYaml $own.podSecurityContext | nindent 2 }}
{{- end }}

{{/* Volumes that both may have, and where they are mounted. Take (list root component). */}}
{{- define "gputally.volumes" -}}
{{- $root := first . }}
{{- $own := index $root.Values (last .) }}
{{- with include "gputally.webSecret" . }}
- name: web
  secret:
    secretName: {{ . }}
{{- end }}
{{- with $own.web.tlsSecret }}
- name: tls
  secret:
    secretName: {{ . }}
{{- end }}
{{- if and $root.Values.usageToken.enabled $root.Values.agent.enabled }}
- name: token
  secret:
    secretName: {{ include "gputally.tokenSecret" $root }}
    items:
      - {key: {{ $root.Values.usageToken.key }}, path: token}
{{- end }}
{{- with $own.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gputally.volumeMounts" -}}
{{- $root := first . }}
{{- $own := index $root.Values (last .) }}
{{- if include "gputally.webSecret" . }}
- {name: web, mountPath: /etc/gputally/web, readOnly: true}
{{- end }}
{{- if $own.web.tlsSecret }}
- {name: tls, mountPath: /etc/gputally/tls, readOnly: true}
{{- end }}
{{- if and $root.Values.usageToken.enabled $root.Values.agent.enabled }}
- {name: token, mountPath: /etc/gputally/token, readOnly: true}
{{- end }}
{{- with $own.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Arguments that both may have, after their own. Takes (list root component). */}}
{{- define "gputally.args" -}}
{{- $root := first . }}
{{- $own := index $root.Values (last .) -}}
- --web.listen-address=:{{ $own.port }}
{{- if include "gputally.webSecret" . }}
- --web.config.file=/etc/gputally/web/web.yaml
{{- end }}
- --log.level={{ $root.Values.log.level }}
- --log.format={{ $root.Values.log.format }}
{{- range $own.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}
