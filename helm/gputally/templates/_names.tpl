{{- define "gputally.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Leaves room for the longest suffix below 63 characters. */}}
{{- define "gputally.fullname" -}}
{{- $name := include "gputally.name" . }}
{{- if .Values.fullnameOverride }}
  {{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
  {{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
  {{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "gputally.aggregator" -}}
{{ include "gputally.fullname" . }}-aggregator
{{- end }}

{{- define "gputally.agent" -}}
{{ include "gputally.fullname" . }}-agent
{{- end }}

{{/* Roles are not in a namespace: releases of one name in two namespaces need two. */}}
{{- define "gputally.clusterRole" -}}
{{ include "gputally.namespace" . }}-{{ include "gputally.aggregator" . }}
{{- end }}

{{- define "gputally.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
  {{- default (include "gputally.fullname" .) .Values.serviceAccount.name }}
{{- else }}
  {{- required "serviceAccount.name: name the account that is there, or let the chart create one" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "gputally.tokenSecret" -}}
{{ default (printf "%s-token" (include "gputally.fullname" .)) .Values.usageToken.existingSecret }}
{{- end }}

{{- define "gputally.claim" -}}
{{ default (printf "%s-ledger" (include "gputally.fullname" .)) .Values.ledger.existingClaim }}
{{- end }}

{{- define "gputally.namespace" -}}
{{ default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{/* What to do as long as no image is published; afterwards this gets a default. */}}
{{- define "gputally.image" -}}
{{- if not .Values.image.repository }}
  {{- fail `image.repository is empty, and no image of gputally is published yet. Choose one:
  - build the image with "make image", push it, and add
      --set image.registry=REGISTRY --set image.repository=REPOSITORY
  - use a mirror: --set global.imageRegistry=REGISTRY --set image.repository=REPOSITORY
  - for a test cluster, load build/gputally.tar into its nodes, and use the name that it was imported with` }}
{{- end }}
{{- $registry := default .Values.image.registry .Values.global.imageRegistry }}
{{- $repository := ternary (printf "%s/%s" $registry .Values.image.repository) .Values.image.repository (ne $registry "") }}
{{- if .Values.image.digest }}
  {{- printf "%s@%s" $repository .Values.image.digest }}
{{- else }}
  {{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}
