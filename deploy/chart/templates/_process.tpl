{{/* What the pods of servers and of workers have in common, as x-process of compose.yaml. */}}
{{- define "decisor.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  fsGroup: 10001
  seccompProfile:
    type: RuntimeDefault
volumes:
  - name: secrets
    secret:
      secretName: {{ .Values.secret }}
      defaultMode: 0440
      items:
        - key: pg_service.conf
          path: pg_service.conf
        - key: users.toml
          path: users.toml
  - name: home
    {{- if .Values.uploadsClaim }}
    persistentVolumeClaim:
      claimName: {{ .Values.uploadsClaim }}
    {{- else }}
    emptyDir: {}
    {{- end }}
  - name: scratch
    emptyDir: {}
  {{- with .Values.dataClaim }}
  - name: data
    persistentVolumeClaim:
      claimName: {{ . }}
      readOnly: true
  {{- end }}
{{- end }}

{{- define "decisor.args" -}}
- --store=postgresql:///?service=decisor
- --users=/secrets/users.toml
- --log=json
{{- range .Values.args }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- define "decisor.container" -}}
image: {{ .Values.image | quote }}
env:
  - name: PGSERVICEFILE
    value: /secrets/pg_service.conf
{{- with .Values.environmentSecret }}
envFrom:
  - secretRef:
      name: {{ . }}
{{- end }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: secrets
    mountPath: /secrets
    readOnly: true
  - name: home
    mountPath: /home/decisor
  - name: scratch
    mountPath: /tmp
  {{- if .Values.dataClaim }}
  - name: data
    mountPath: /data
    readOnly: true
  {{- end }}
{{- end }}
