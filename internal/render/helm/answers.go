package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Lookup is a call of the template function lookup.
type Lookup struct {
	// APIVersion and Kind name the kind, such as v1 and Secret.
	APIVersion string `json:"apiVersion"`
	// Kind is the kind's name.
	Kind string `json:"kind"`
	// Namespace is empty for all namespaces, or where the kind has none.
	Namespace string `json:"namespace,omitempty"`
	// Name is empty where a list is asked for.
	Name string `json:"name,omitempty"`
}

// String names what is looked up, for people.
func (l Lookup) String() string {
	text := l.APIVersion + " " + l.Kind
	if l.Name == "" {
		text = "list of " + text
	} else {
		text += " " + l.Name
	}
	if l.Namespace != "" {
		text += " in " + l.Namespace
	}
	return text
}

// Answer is what a cluster says to a lookup.
type Answer struct {
	// Lookup is the question.
	Lookup Lookup `json:"lookup"`
	// Found is the object, or the list, as JSON; empty where there is none.
	Found json.RawMessage `json:"found,omitempty"`
	// Refused is why the cluster does not say; it fails the template.
	Refused string `json:"refused,omitempty"`
}

// answers is a cluster that knows the answers that it was given, and notes what
// else it is asked.
type answers struct {
	known   map[Lookup]Answer
	missing []Lookup
}

func newAnswers(known []Answer) *answers {
	a := &answers{known: make(map[Lookup]Answer, len(known))}
	for _, answer := range known {
		a.known[answer.Lookup] = answer
	}
	return a
}

// GetClientFor implements engine.ClientProvider.
func (a *answers) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return answering{answers: a, lookup: Lookup{APIVersion: apiVersion, Kind: kind}}, true, nil
}

// answering answers for one kind. The methods that the engine does not call are
// those of a nil interface.
type answering struct {
	dynamic.NamespaceableResourceInterface
	answers *answers
	lookup  Lookup
}

// Namespace implements dynamic.NamespaceableResourceInterface.
func (c answering) Namespace(namespace string) dynamic.ResourceInterface {
	c.lookup.Namespace = namespace
	return c
}

// Get answers for one object.
func (c answering) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	c.lookup.Name = name
	found, err := c.answers.find(c.lookup)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	return obj, decodeAnswer(c.lookup, found, obj)
}

// List answers for all objects of a kind.
func (c answering) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	found, err := c.answers.find(c.lookup)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	return list, decodeAnswer(c.lookup, found, list)
}

func decodeAnswer(l Lookup, found json.RawMessage, into json.Unmarshaler) error {
	if err := into.UnmarshalJSON(found); err != nil {
		return fmt.Errorf("what the cluster answers to the lookup of %s is no object: %w", l, err)
	}
	return nil
}

// find returns the answer to a lookup. One that is missing is answered as by an
// empty cluster.
func (a *answers) find(l Lookup) (json.RawMessage, error) {
	answer, ok := a.known[l]
	if !ok && !slices.Contains(a.missing, l) {
		a.missing = append(a.missing, l)
	}
	switch {
	case answer.Refused != "":
		return nil, errors.New(answer.Refused)
	case len(answer.Found) == 0:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: l.Kind}, l.Name)
	}
	return answer.Found, nil
}
