package apply

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

func itemOf(t *testing.T, text string) item {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return item{obj: obj, ref: RefOf(obj)}
}

// TestDecides names, for each refusal, what may lift it.
func TestDecides(t *testing.T) {
	pod, gadget := "{apiVersion: v1, kind: Pod, metadata: {namespace: a, name: x}}", "{apiVersion: e.org/v1, kind: Gadget, metadata: {namespace: a, name: x}}"
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no"))
	invalid := apierrors.NewInvalid(schema.GroupKind{}, "x", field.ErrorList{field.Invalid(field.NewPath("spec"), "", "")})
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: "no"}}}}}
	untyped := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500}}
	quota := "{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: a, name: q}}"
	crd := "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: e.org, names: {kind: Gadget}, scope: Namespaced, versions: [{name: v1, served: true}]}}"
	policy := "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: p}}"
	role := "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: a, name: r}}"
	for name, test := range map[string]struct {
		d, it string
		cause error
		want  bool
	}{
		"a quota":                                  {quota, pod, forbidden, true},
		"a quota elsewhere":                        {"{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: b, name: q}}", pod, forbidden, false},
		"a quota and an invalid object":            {quota, pod, invalid, false},
		"a policy":                                 {policy, pod, denied, true},
		"a policy and an invalid object":           {policy, pod, invalid, false},
		"a policy of Kyverno":                      {"{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {namespace: a, name: q}}", pod, forbidden, true},
		"any other custom object":                  {gadget, pod, forbidden, false},
		"a definition and an unknown field":        {crd, gadget, untyped, true},
		"a definition and an invalid object":       {crd, gadget, invalid, true},
		"a definition of another kind":             {crd, pod, forbidden, false},
		"an unknown field of a built-in kind":      {policy, pod, untyped, false},
		"a class for a Pod":                        {"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: q}}", pod, forbidden, true},
		"rights for rights":                        {role, "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: a, name: x}}", forbidden, true},
		"rights for anything else":                 {role, pod, forbidden, false},
		"a storage class for a claim that grows":   {"{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: q}}", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: a, name: x}}", forbidden, true},
		"an account for its Pod":                   {"{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: a, name: q}}", pod, forbidden, true},
		"a webhook and an invalid custom resource": {policy, gadget, invalid, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decides(itemOf(t, test.d), itemOf(t, test.it), refused{cause: test.cause, err: test.cause}); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAnswered(t *testing.T) {
	for name, test := range map[string]struct {
		cause          error
		answered, sure bool
	}{
		"forbidden":         {apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no")), true, false},
		"a webhook is away": {apierrors.NewInternalError(errors.New("x")), true, false},
		"an unknown field":  {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500}}, true, true},
		"too many requests": {apierrors.NewTooManyRequests("", 1), false, false},
		"a timeout":         {apierrors.NewTimeoutError("", 1), false, false},
		"no connection":     {errors.New("x"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			why := refused{cause: test.cause, err: test.cause}
			it := itemOf(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: a, name: x}}")
			if why.answered() != test.answered || why.whatever(it) != test.sure {
				t.Errorf("answered %v, sure %v", why.answered(), why.whatever(it))
			}
		})
	}
}
