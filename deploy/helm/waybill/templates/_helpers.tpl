{{- define "waybill.labels" -}}
app.kubernetes.io/name: waybill
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "waybill.selector" -}}
app.kubernetes.io/name: waybill
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "waybill.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65534
runAsGroup: 65534
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- /* A container, but for its arguments and what only one of them has. */ -}}
{{- define "waybill.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
envFrom:
  - secretRef:
      name: {{ .Values.secret }}
env:
  - name: CHAINS_FILE
    value: {{ ternary "none" "/etc/waybill/chains.json" (empty .Values.chainsFile) }}
  {{- if .Values.metrics.enabled }}
  - name: METRICS_PORT
    value: "9464"
  {{- end }}
  {{- range $name, $value := .Values.env }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- if .Values.chainsFile }}
volumeMounts:
  - name: chains
    mountPath: /etc/waybill
    readOnly: true
{{- end }}
{{- end }}
