package target

import (
	"errors"
	"fmt"
	"strings"
	"text/template"
)

// Reference is a key that a template reads of what is known of the cluster:
// Root is ClusterLabels, ClusterAnnotations or ClusterValues.
type Reference struct{ Root, Key string }

// missingError says what a cluster lacks.
type missingError struct {
	missing []Reference
	message string
}

func (e *missingError) Error() string { return e.message }

// Missing returns what templates of the values read of a cluster that lacks it,
// where err is of that.
func Missing(err error) []Reference {
	if err == nil {
		return nil
	}
	switch e := err.(type) { //nolint:errorlint // each layer is looked at in turn
	case *missingError:
		return e.missing
	case interface{ Unwrap() []error }:
		var all []Reference
		for _, part := range e.Unwrap() {
			all = append(all, Missing(part)...)
		}
		return all
	}
	return Missing(errors.Unwrap(err))
}

// templateError says what a template lacks on a cluster, or else why it failed.
func templateError(s *scope, path, text string, needs []Reference, cause error) error {
	var advices []string
	var missing []Reference
	for _, need := range needs {
		if advice := adviceFor(s, need); advice != "" {
			advices, missing = append(advices, advice), append(missing, need)
		}
	}
	switch {
	case len(missing) > 0:
		return &missingError{missing, fmt.Sprintf("%s: %q: %s", path, text, strings.Join(advices, "; "))}
	case cause == nil:
		return fmt.Errorf("%s: %q reads something that is not there; give it a default", path, text)
	}
	return fmt.Errorf("%s: %q: %w", path, text, inner(cause))
}

// inner drops the words in which text/template wraps the error of a function.
func inner(err error) error {
	if e, ok := errors.AsType[template.ExecError](err); ok {
		if cause := errors.Unwrap(e.Err); cause != nil {
			return cause
		}
	}
	return err
}

// adviceFor returns what to do where the cluster lacks what is needed.
func adviceFor(s *scope, need Reference) string {
	known, ok := s.data[need.Root].(map[string]any)
	if !ok {
		return ""
	}
	if _, there := known[need.Key]; there {
		return ""
	}
	soft := fmt.Sprintf(`${ get .%s %q }`, need.Root, need.Key)
	switch need.Root {
	case "ClusterLabels":
		return fmt.Sprintf("the cluster has no label %q; set it with: kubectl label clusters.fleet.cattle.io -n %s %s %s=VALUE, or use %s, which may be empty",
			need.Key, s.cluster.Namespace, s.cluster.Name, need.Key, soft)
	case "ClusterAnnotations":
		return fmt.Sprintf("the cluster has no annotation %q; set it with: kubectl annotate clusters.fleet.cattle.io -n %s %s %s=VALUE, or use %s, which may be empty",
			need.Key, s.cluster.Namespace, s.cluster.Name, need.Key, soft)
	}
	return fmt.Sprintf("the cluster has no %q in spec.templateValues; add it to the Cluster %s, or use %s, which may be empty",
		need.Key, s.cluster.ID(), soft)
}
