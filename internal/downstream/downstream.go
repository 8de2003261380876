// Package downstream makes copies of the Secrets and ConfigMaps that a bundle's
// downstreamResources name: what its clusters get of them. It is pure.
package downstream

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/manifest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// The reasons of errors about what is to be copied.
const (
	ReasonMissing = "WaitingForResource"
	ReasonInvalid = "InvalidDownstreamResource"
)

// Origin is the source of every copy, where other objects have their file.
const Origin = "downstreamResources"

// Source names an object of the bundle's namespace on the hub.
type Source struct{ Kind, Name string }

// String names the object for people.
func (s Source) String() string { return s.Kind + " " + s.Name }

// Sources returns what options name, each once and sorted.
func Sources(options ...*fleet.BundleDeploymentOptions) []Source {
	var out []Source
	for _, o := range options {
		for _, r := range o.DownstreamResources {
			kind := r.Kind
			switch strings.ToLower(r.Kind) {
			case "secret":
				kind = "Secret"
			case "configmap":
				kind = "ConfigMap"
			}
			out = append(out, Source{Kind: kind, Name: r.Name})
		}
	}
	slices.SortFunc(out, func(a, b Source) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(out)
}

// maxSources is how many objects a bundle may name: each is read, and followed by
// a watch of its own.
const maxSources = 100

// OfBundle returns what a bundle and its targets name.
func OfBundle(spec *fleet.BundleSpec) ([]Source, error) {
	options := []*fleet.BundleDeploymentOptions{&spec.BundleDeploymentOptions}
	for i := range spec.Targets {
		options = append(options, &spec.Targets[i].BundleDeploymentOptions)
	}
	all := Sources(options...)
	if len(all) > maxSources {
		return nil, fault.Stall(ReasonInvalid, fmt.Errorf(
			"downstreamResources: the bundle and its targets name %d objects, and may name %d: put what belongs together into one, or split the bundle", len(all), maxSources))
	}
	return all, nil
}

// Copy is what clusters get of an object, or why they get nothing.
type Copy struct {
	object runtime.Object
	// Err is why there is none.
	Err error
}

// OfSecret returns the copy of a Secret.
func OfSecret(s *corev1.Secret) Copy {
	if why := unfit(s.Type); why != "" {
		return Copy{Err: fault.Stall(ReasonInvalid, fmt.Errorf("downstreamResources: the Secret %s/%s is of the type %s, %s: take it out of the list", s.Namespace, s.Name, s.Type, why))}
	}
	return Copy{object: &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta(&s.ObjectMeta),
		Type: s.Type, Data: s.Data,
	}}
}

// OfConfigMap returns the copy of a ConfigMap.
func OfConfigMap(c *corev1.ConfigMap) Copy {
	return Copy{object: &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta(&c.ObjectMeta),
		Data: c.Data, BinaryData: c.BinaryData,
	}}
}

// missingRetry is when to look again for what is missing; that it came is also
// an event.
const missingRetry = 5 * time.Minute

// Missing is the copy of an object that is not there.
func Missing(s Source, namespace string) Copy {
	return Copy{Err: fault.Wait(missingRetry, ReasonMissing, fmt.Errorf(
		"downstreamResources: there is no %s %s/%s on the hub: create it, or take it out of the list", s.Kind, namespace, s.Name))}
}

// Invalid is the copy of an object of a kind that is not copied.
func Invalid(s Source) Copy {
	return Copy{Err: fault.Stall(ReasonInvalid, fmt.Errorf("downstreamResources: the kind %q of %q is not copied: only Secret and ConfigMap are", s.Kind, s.Name))}
}

// unfit says why Secrets of a type are not copied, or "".
func unfit(kind corev1.SecretType) string {
	switch {
	case kind == corev1.SecretTypeServiceAccountToken:
		return "which means nothing on another cluster"
	case strings.HasPrefix(string(kind), "flotilla.sh/"), strings.HasPrefix(string(kind), "fleet.cattle.io/"):
		return "which is the hub's own"
	}
	return ""
}

// others are the prefixes of labels and annotations by which tools know what is
// theirs on the hub, or would do something on the cluster.
var others = []string{
	"flotilla.sh/", "fleet.cattle.io/", "objectset.rio.cattle.io/", "field.cattle.io/", "app.kubernetes.io/managed-by",
	"kubectl.kubernetes.io/", "meta.helm.sh/", "helm.sh/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "argocd.argoproj.io/tracking-id",
}

// meta is the metadata of a copy.
func meta(of *metav1.ObjectMeta) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Name: of.Name, Labels: own(of.Labels), Annotations: own(of.Annotations)}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[fleet.CopiedAnnotation] = of.Namespace + "/" + of.Name
	return out
}

func own(m map[string]string) map[string]string {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(key, _ string) bool {
		return slices.ContainsFunc(others, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	return out
}

// StandIn takes the place of a copy where the hub is not asked: an object of the
// same name, without data.
func StandIn(s Source) Copy {
	switch s.Kind {
	case "Secret":
		return OfSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.Name}})
	case "ConfigMap":
		return OfConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: s.Name}})
	}
	return Invalid(s)
}

// StandIns take the place of the copies that sources lead to.
func StandIns(sources []Source) map[Source]Copy {
	out := make(map[Source]Copy, len(sources))
	for _, source := range sources {
		out[source] = StandIn(source)
	}
	return out
}

// In returns the copy as an object of a namespace.
func (c Copy) In(namespace string) (render.Object, error) {
	if c.Err != nil {
		return render.Object{}, c.Err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.object)
	if err != nil {
		return render.Object{}, err
	}
	meta, _ := object["metadata"].(map[string]any)
	delete(meta, "creationTimestamp")
	meta["namespace"] = namespace
	text, err := manifest.Canonical(object)
	if err != nil {
		return render.Object{}, err
	}
	kind, _ := object["kind"].(string)
	name, _ := meta["name"].(string)
	return render.Object{JSON: text, APIVersion: "v1", Kind: kind, Namespace: namespace, Name: name, Source: Origin}, nil
}

// All returns the copies that options ask for, in the namespace that they deploy
// to.
func All(o *fleet.BundleDeploymentOptions, copies map[Source]Copy) ([]render.Object, error) {
	var out []render.Object
	namespace := cmp.Or(o.TargetNamespace, o.DefaultNamespace, metav1.NamespaceDefault)
	for _, source := range Sources(o) {
		object, err := copies[source].In(namespace)
		if err != nil {
			return nil, err
		}
		out = append(out, object)
	}
	return out, nil
}
