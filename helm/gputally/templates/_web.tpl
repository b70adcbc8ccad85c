{{/* The Secret with the web configuration of a component, if it has one. Takes (list root component). */}}
{{- define "gputally.webSecret" -}}
{{- $root := first . }}
{{- $web := (index $root.Values (last .)).web }}
{{- if $web.existingSecret }}
  {{- $web.existingSecret }}
{{- else if $web.config }}
  {{- printf "%s-%s-web" (include "gputally.fullname" $root) (last .) }}
{{- end }}
{{- end }}

{{/* Takes the values of a `web`. */}}
{{- define "gputally.scheme" -}}
{{- if .scheme }}
  {{- .scheme }}
{{- else }}
  {{- ternary "HTTPS" "HTTP" (not (empty ((.config).tls_server_config))) }}
{{- end }}
{{- end }}

{{/*
A probe. Health needs no password, but where every connection needs a certificate, the kubelet can only connect.
Takes (list web path timing).
*/}}
{{- define "gputally.probe" -}}
{{- $web := first . }}
{{- $certified := eq (default "" (($web.config).tls_server_config).client_auth_type) "RequireAndVerifyClientCert" }}
{{- if eq (default (ternary "tcp" "http" $certified) $web.probes) "tcp" -}}
tcpSocket:
  port: metrics
{{- else -}}
httpGet:
  path: {{ index . 1 }}
  port: metrics
  scheme: {{ include "gputally.scheme" $web }}
{{- end }}
{{- with last . }}
{{ toYaml . }}
{{- end }}
{{- end }}
