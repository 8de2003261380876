package overview

import (
	"fmt"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func (m *maker) deployment(d *fleet.BundleDeployment) {
	place := status.PlaceOf(d)
	shown := Deployment{Bundle: place.Bundle.String(), Cluster: place.Cluster.String(), State: string(status.StateOf(d))}
	if d.Spec.Content != nil {
		shown.Digest = d.Spec.Content.Digest
	}
	at := Problem{Kind: "BundleDeployment", Namespace: place.Bundle.Namespace, Name: place.Bundle.Name, Cluster: shown.Cluster}
	switch {
	case m.silent[shown.Cluster] != "":
		// What its agent said last is no news; the cluster itself is the problem.
		shown.State = m.silent[shown.Cluster]
	case d.Spec.Removal != nil:
		shown.State = stateRemoving
		m.removing(at, d)
	case shown.State != string(fleet.Ready):
		m.problems(at, d)
	}
	if held := d.Status.HeldObjects; len(held) > 0 {
		m.note(at, "Kept", "left the bundle and stay on the cluster: "+objectList(held))
	}
	m.out.Deployments = append(m.out.Deployments, shown)
}

func (m *maker) removing(at Problem, d *fleet.BundleDeployment) {
	message := "it is being removed: " + d.Spec.Removal.Reason
	if d.Status.RemovalState != nil && d.Status.RemovalState.Message != "" {
		message += "; " + d.Status.RemovalState.Message
	}
	m.note(at, stateRemoving, message)
}

// problems adds what is wrong with a deployment.
func (m *maker) problems(at Problem, d *fleet.BundleDeployment) {
	state := status.StateOf(d)
	at.More = d.Status.IncompleteState
	for _, modified := range d.Status.ModifiedStatus {
		at.Objects = append(at.Objects, modifiedObject(modified))
	}
	for _, sick := range d.Status.NonReadyStatus {
		at.Objects = append(at.Objects, Object{
			ObjectRef: fleet.ObjectRef{APIVersion: sick.APIVersion, Kind: sick.Kind, Namespace: sick.Namespace, Name: sick.Name},
			Message:   sickness(sick.Summary),
		})
	}
	message := status.MessageOf(d)
	if message == "" && len(at.Objects) == 0 {
		message = explain(state)
	}
	m.problem(at, string(state), message)
}

// explain says what a state means where the agent has said nothing.
func explain(state fleet.BundleState) string {
	switch state {
	case fleet.WaitApplied:
		return "its agent has not applied it yet"
	case fleet.OutOfSync:
		return "newer content waits: the bundle or the cluster is paused or held back"
	case fleet.NotReady:
		return "its objects are not ready yet"
	}
	return ""
}

func modifiedObject(s fleet.ModifiedStatus) Object {
	o := Object{
		ObjectRef: fleet.ObjectRef{APIVersion: s.APIVersion, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name},
		Message:   "modified", Fields: s.Fields, By: s.By,
	}
	switch {
	case s.Create && s.Exist:
		o.Message = "exists and is not ours"
	case s.Create:
		o.Message = "missing"
	case s.Delete:
		o.Message = "should not be there"
	case len(s.Fields) == 0 && s.Patch != "":
		o.Message = "modified; to put it back: " + s.Patch
	}
	if isSecret(o.ObjectRef) {
		o = hideValues(o)
	}
	return o
}

func isSecret(o fleet.ObjectRef) bool { return o.APIVersion == "v1" && o.Kind == "Secret" }

// hideValues makes sure of what the agent does already.
func hideValues(o Object) Object {
	fields := make([]fleet.FieldDrift, len(o.Fields))
	for i, f := range o.Fields {
		fields[i] = fleet.FieldDrift{Path: f.Path, Desired: "(hidden)", Live: "(hidden)"}
	}
	o.Fields = fields
	if strings.HasPrefix(o.Message, "modified") {
		o.Message = "modified"
	}
	return o
}

func sickness(s fleet.Summary) string {
	words := []string{s.State}
	if s.State == "" {
		words[0] = "not ready"
	}
	if s.Error {
		words = append(words, "failed")
	}
	text := strings.Join(words, ", ")
	if len(s.Message) > 0 {
		text += ": " + strings.Join(s.Message, "; ")
	}
	return text
}

func objectList(refs []fleet.ObjectRef) string {
	var names []string
	for _, ref := range refs {
		names = append(names, objectName(ref))
	}
	return strings.Join(names, ", ")
}

// objectName names an object as "Kind namespace/name".
func objectName(o fleet.ObjectRef) string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name)
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
