package agent_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/render"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// copied is a Secret as the hub sends it of what it copies.
func copied(namespace, name, key, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","data":{%q:%q},"kind":"Secret","metadata":{"annotations":{"flotilla.sh/copied-from":"ws/%s"},"name":%q,"namespace":%q},"type":"Opaque"}`,
		key, base64.StdEncoding.EncodeToString([]byte(value)), name, name, namespace)
}

func TestCopiesComeBeforeHooks(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	objects := func(value string) []string {
		return []string{
			configMap(shop, "a", value), copied(shop, "pull", "p", value),
			job(shop, "first", `helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"`),
		}
	}
	w.deploy("web", objects("1"))
	w.start()
	for _, value := range []string{"1", "2"} {
		w.until("web", says("hook Job "+shop+"/first"))
		if got, want := w.must("v1/Secret", shop, "pull").Object["data"], base64.StdEncoding.EncodeToString([]byte(value)); got.(map[string]any)["p"] != want {
			t.Errorf("before the hook the copy is %v, want %s", got, want)
		}
		if value == "1" {
			w.absent("v1/ConfigMap", shop, "a")
		} else {
			w.untilValue(shop, "a", "1")
		}
		w.end(shop, "first", "Complete")
		w.until("web", ready)
		w.untilValue(shop, "a", value)
		w.deploy("web", objects("2"))
	}
	w.deploy("web", nil, marked)
	w.until("web", gone)
	w.absent("v1/Secret", shop, "pull")
}

func TestValuesAndLookupsOfCopies(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	files := chart + "-- templates/cm.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {all: \"{{ .Values.colour }} {{ (lookup \"v1\" \"Secret\" .Release.Namespace \"s\").data.v }}\"}\n"
	options := func(colour string) (fleet.BundleDeploymentOptions, render.Object) {
		return fleet.BundleDeploymentOptions{
			DefaultNamespace: shop, DownstreamResources: []fleet.DownstreamResource{{Kind: "secret", Name: "s"}},
			Helm: &fleet.HelmOptions{ValuesFrom: []fleet.ValuesFrom{{
				SecretKeyRef: &fleet.SecretKeySelector{LocalObjectReference: fleet.LocalObjectReference{Name: "s"}, Key: "v"},
			}}},
		}, render.Object{JSON: []byte(copied(shop, "s", "v", "colour: "+colour)), APIVersion: "v1", Kind: "Secret", Namespace: shop, Name: "s"}
	}
	o, sent := options("blue")
	w.deploySource("web", files, o, sent)
	w.start()
	w.until("web", ready)
	w.eventually(func() error { return equal(w.data(shop, "cm", "all"), "blue Y29sb3VyOiBibHVl") })
	w.must("v1/Secret", shop, "s")

	o, sent = options("green")
	w.deploySource("web", files, o, sent)
	w.until("web", ready)
	w.eventually(func() error { return equal(w.data(shop, "cm", "all"), "green Y29sb3VyOiBncmVlbg==") })
}

func equal(got, want string) error {
	if got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
}
