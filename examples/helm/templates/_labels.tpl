{{- define "greeter.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "greeter.labels" -}}
{{ include "greeter.selector" . }}
{{- with .Values.environment }}
example.com/environment: {{ . }}
{{- end }}
{{- with .Values.region }}
example.com/region: {{ . }}
{{- end }}
{{- end }}
