package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// moving is an object that goes from bundle a to bundle b.
type moving struct {
	*world
	shop string
	uid  types.UID
}

func newMoving(t *testing.T) *moving {
	w := newWorld(t)
	m := &moving{world: w, shop: w.ns("shop")}
	w.settle = time.Second
	w.deploy("a", []string{configMap(m.shop, "stays", "1"), configMap(m.shop, "moves", "1")})
	w.deploy("b", []string{configMap(m.shop, "other", "1")})
	w.start()
	w.until("a", ready)
	w.until("b", ready)
	m.uid = w.must("v1/ConfigMap", m.shop, "moves").GetUID()
	return m
}

func (m *moving) drop() { m.deploy("a", []string{configMap(m.shop, "stays", "1")}) }
func (m *moving) want() {
	m.deploy("b", []string{configMap(m.shop, "other", "1"), configMap(m.shop, "moves", "2")})
}
func (m *moving) remove() {
	m.deploy("a", nil, func(bd *fleet.BundleDeployment) { bd.Spec.Removal = &fleet.Removal{Reason: "renamed"} })
}

// moved waits until b has the object, and fails where it is another one.
func (m *moving) moved(bundle string) {
	m.t.Helper()
	m.until(bundle, ready)
	got := m.must("v1/ConfigMap", m.shop, "moves")
	if got.GetUID() != m.uid {
		m.t.Error("the object was made anew")
	}
	if owner := got.GetAnnotations()[fleet.BundleAnnotation]; owner != m.namespace+"/"+bundle {
		m.t.Errorf("it belongs to %s", owner)
	}
	for _, e := range got.GetManagedFields() {
		if e.Manager != "flotilla-"+m.namespace+"/"+bundle {
			m.t.Errorf("%s still has fields of it: %s", e.Manager, e.FieldsV1)
		}
	}
}

func (m *moving) refused() {
	m.t.Helper()
	if message := deployedMessage(m.until("b", in(fleet.ErrApplied))); !strings.Contains(message, "ConfigMap "+m.shop+"/moves: it belongs to bundle "+m.namespace+"/a") {
		m.t.Errorf("message: %s", message)
	}
}

func TestObjectIsHandedOver(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *moving)
		gone   bool
	}{
		"dropped first":                  {change: func(m *moving) { m.drop(); m.want() }},
		"wanted first":                   {change: func(m *moving) { m.want(); m.refused(); m.drop() }},
		"dropped while the agent is off": {change: func(m *moving) { m.want(); m.refused(); m.stop(); m.drop(); m.start() }},
		"both while the agent is off":    {change: func(m *moving) { m.stop(); m.drop(); m.want(); m.start() }},
		"the bundle goes":                {change: func(m *moving) { m.remove(); m.want() }, gone: true},
		"the bundle goes later":          {change: func(m *moving) { m.want(); m.refused(); m.remove() }, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMoving(t)
			test.change(m)
			m.moved("b")
			if !test.gone {
				m.until("a", ready)
				m.untilValue(m.shop, "stays", "1")
				return
			}
			m.until("a", gone)
			if _, err := m.object("v1/ConfigMap", m.shop, "stays"); !apierrors.IsNotFound(err) {
				t.Errorf("what nobody wants is left: %v", err)
			}
		})
	}
}

// TestRenamedBundleKeepsItsObjects gives all objects to a bundle with another
// name, a namespace and a volume claim included.
func TestRenamedBundleKeepsItsObjects(t *testing.T) {
	for _, first := range []string{"old", "new"} {
		t.Run(first+" first", func(t *testing.T) {
			w := newWorld(t)
			w.settle = time.Second
			shop := w.ns("shop")
			objects := []string{
				fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", shop),
				fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {namespace: %s, name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", shop),
				configMap(shop, "cm", "1"), deployment(shop, "web"),
			}
			refs := [][3]string{{"v1/Namespace", "", shop}, {"v1/PersistentVolumeClaim", shop, "data"}, {"v1/ConfigMap", shop, "cm"}, {"apps/v1/Deployment", shop, "web"}}
			w.deploy("old", objects)
			w.start()
			w.until("old", applied)
			var uids []types.UID
			for _, r := range refs {
				uids = append(uids, w.must(r[0], r[1], r[2]).GetUID())
			}
			mark := func() {
				w.deploy("old", nil, func(bd *fleet.BundleDeployment) { bd.Spec.Removal = &fleet.Removal{Reason: "renamed"} })
			}
			if first == "old" {
				mark()
				w.deploy("new", objects)
			} else {
				w.deploy("new", objects)
				mark()
			}
			w.until("new", applied)
			w.until("old", gone)
			for i, r := range refs {
				got := w.must(r[0], r[1], r[2])
				if got.GetUID() != uids[i] || got.GetDeletionTimestamp() != nil || got.GetAnnotations()[fleet.BundleAnnotation] != w.namespace+"/new" {
					t.Errorf("%v: %v", r, got.GetAnnotations())
				}
			}
			if bd := w.status("old"); len(bd.Status.HeldObjects) > 0 {
				t.Errorf("held: %v", bd.Status.HeldObjects)
			}
		})
	}
}
