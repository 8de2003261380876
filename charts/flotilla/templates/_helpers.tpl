{{- /* The bytes of a size: a number, or one with a unit. A list of the value's name and the value. */ -}}
{{- define "flotilla.bytes" -}}
{{- $name := index . 0 -}}
{{- $value := index . 1 -}}
{{- $text := toString $value -}}
{{- /* Numbers of a values file. */ -}}
{{- if kindIs "float64" $value -}}
{{- if eq (floor $value) $value -}}
{{- $text = toString (int64 $value) -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch "^[0-9]{1,18}$|^[0-9]{1,6}([kMGT]|[KMGT]i)$" $text) -}}
{{- fail (printf "%s: %q is no size: write bytes, or a whole number with k, M, G, T, Ki, Mi, Gi or Ti, such as 512Mi" $name $text) -}}
{{- end -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- mul (regexFind "^[0-9]+" $text | int64) (get $units (regexFind "[A-Za-z]*$" $text) | int64) -}}
{{- end -}}

{{- /*
The size of the volume for the cache. The hub keeps to gitCacheSize after each
fetch, to twice that during one, and to 256Mi of charts. Eight GitRepos
and eight HelmOps are packed at once, and each may have a chart on its way, a small fetch (32Mi), and indexes of chart
repositories (160Mi).
*/ -}}
{{- define "flotilla.cacheVolume" -}}
{{- $clones := include "flotilla.bytes" (list "gitCacheSize" .Values.gitCacheSize) | int64 -}}
{{- $chart := include "flotilla.bytes" (list "chartLimits.size" (.Values.chartLimits.size | default "64Mi")) | int64 -}}
{{- if $clones -}}
{{- add (mul 2 $clones) 268435456 (mul 16 (add $chart 201326592)) -}}
{{- end -}}
{{- end -}}
