{{/* The role of a group on this cluster: that of its environment, or the default. */}}
{{- define "baseline.role" -}}
{{- get .group.roles .env | default .group.roles.default -}}
{{- end }}

{{/* What a group's name becomes in the name of an object. */}}
{{- define "baseline.slug" -}}
{{- . | lower | replace ":" "-" | replace "/" "-" | replace "@" "-" | replace " " "-" -}}
{{- end }}
