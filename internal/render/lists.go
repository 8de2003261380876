package render

import (
	"fmt"
	"strings"
)

// keyed is a list whose items have a key, so that server-side apply takes no key
// twice. Helm and kubectl take such lists, and let one of the two win.
type keyed struct {
	// list is the path to it from the object that has it.
	list string
	// keys are the fields that make up the key of an item, each with what the
	// API server takes where it is not set.
	keys []keyField
}

type keyField struct{ name, otherwise string }

func by(names ...string) []keyField {
	keys := make([]keyField, 0, len(names))
	for _, name := range names {
		name, otherwise, _ := strings.Cut(name, "=")
		keys = append(keys, keyField{name, otherwise})
	}
	return keys
}

// The keyed lists of the built-in kinds that people write.
var (
	podLists = []keyed{
		{"containers", by("name")}, {"initContainers", by("name")}, {"volumes", by("name")}, {"imagePullSecrets", by("name")},
		{"hostAliases", by("ip")}, {"topologySpreadConstraints", by("topologyKey", "whenUnsatisfiable")},
	}
	containerLists = []keyed{
		{"ports", by("containerPort", "protocol=TCP")}, {"env", by("name")}, {"volumeMounts", by("mountPath")}, {"volumeDevices", by("devicePath")},
	}
	objectLists = map[string][]keyed{
		"v1/Service":        {{"spec.ports", by("port", "protocol=TCP")}},
		"v1/ServiceAccount": {{"secrets", by("name")}},
		"admissionregistration.k8s.io/v1/MutatingWebhookConfiguration":   {{"webhooks", by("name")}},
		"admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration": {{"webhooks", by("name")}},
	}
	podSpecs = map[string]string{
		"v1/Pod": "spec", "v1/PodTemplate": "template.spec", "v1/ReplicationController": "spec.template.spec",
		"apps/v1/Deployment": "spec.template.spec", "apps/v1/StatefulSet": "spec.template.spec",
		"apps/v1/DaemonSet": "spec.template.spec", "apps/v1/ReplicaSet": "spec.template.spec",
		"batch/v1/Job": "spec.template.spec", "batch/v1/CronJob": "spec.jobTemplate.spec.template.spec",
	}
)

// repeatedKey says which list of a built-in kind has a key twice, or nothing.
func repeatedKey(apiVersion, kind string, object map[string]any) error {
	id := apiVersion + "/" + kind
	if err := repeatedIn(object, "", objectLists[id]); err != nil {
		return err
	}
	path, ok := podSpecs[id]
	if !ok {
		return nil
	}
	pod, _ := at(object, path).(map[string]any)
	if err := repeatedIn(pod, path+".", podLists); err != nil {
		return err
	}
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := pod[list].([]any)
		for i, c := range containers {
			container, _ := c.(map[string]any)
			if err := repeatedIn(container, fmt.Sprintf("%s.%s[%d].", path, list, i), containerLists); err != nil {
				return err
			}
		}
	}
	return nil
}

func repeatedIn(object map[string]any, where string, lists []keyed) error {
	for _, l := range lists {
		items, _ := at(object, l.list).([]any)
		seen := make(map[string]int, len(items))
		for i, it := range items {
			key, ok := l.keyOf(it)
			if !ok {
				continue
			}
			if first, twice := seen[key]; twice {
				return fmt.Errorf("%s%s has the key %s twice, in items %d and %d; server-side apply takes each key once: remove one of them",
					where, l.list, key, first, i)
			}
			seen[key] = i
		}
	}
	return nil
}

// keyOf returns the key of an item for people; it has none where a part of the
// key is missing that has no default.
func (l keyed) keyOf(it any) (string, bool) {
	item, ok := it.(map[string]any)
	if !ok {
		return "", false
	}
	parts := make([]string, 0, len(l.keys))
	for _, k := range l.keys {
		value, set := item[k.name]
		if !set && k.otherwise == "" {
			return "", false
		}
		if !set {
			value = k.otherwise
		}
		parts = append(parts, fmt.Sprintf("%s=%v", k.name, value))
	}
	return strings.Join(parts, ","), true
}

// at returns what is at a path of maps.
func at(object map[string]any, path string) any {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		object, _ = object[name].(map[string]any)
	}
	return object[names[len(names)-1]]
}
