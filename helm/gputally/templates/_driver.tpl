{{/* How the driver's libraries come into the agent. These take the values of the agent. */}}
{{- define "gputally.driverEnv" -}}
{{- if .driverPath -}}
- {name: LD_LIBRARY_PATH, value: /usr/local/nvidia/lib64}
{{- else -}}
- {name: NVIDIA_VISIBLE_DEVICES, value: all}
- {name: NVIDIA_DRIVER_CAPABILITIES, value: utility}
{{- if .mig }}
- {name: NVIDIA_MIG_MONITOR_DEVICES, value: all}
{{- end }}
{{- end }}
{{- end }}

{{/*
NVIDIA's runtime shows MIG devices of others only to containers that may administer. Without that runtime nobody lets a
container open the driver's devices, unless it asks for a GPU, which an agent never does, or is privileged.
*/}}
{{- define "gputally.agentSecurityContext" -}}
{{- if .driverPath }}
{{- toYaml (merge (dict "privileged" true) (omit .securityContext "allowPrivilegeEscalation" "capabilities")) }}
{{- else if .mig }}
{{- toYaml (merge (dict "capabilities" (dict "drop" (list "ALL") "add" (list "SYS_ADMIN")))
                  (omit .securityContext "allowPrivilegeEscalation" "capabilities")) }}
{{- else }}
{{- toYaml .securityContext }}
{{- end }}
{{- end }}
