package target

import (
	"errors"
	"fmt"
	"strings"
	"text/template"
)

// templateError says what a template lacks on a cluster, or else why it failed.
func templateError(s *scope, path, text string, needs []reference, cause error) error {
	var missing []string
	for _, need := range needs {
		if advice := adviceFor(s, need); advice != "" {
			missing = append(missing, advice)
		}
	}
	switch {
	case len(missing) > 0:
		return fmt.Errorf("%s: %q: %s", path, text, strings.Join(missing, "; "))
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
func adviceFor(s *scope, need reference) string {
	known, ok := s.data[need.root].(map[string]any)
	if !ok {
		return ""
	}
	if _, there := known[need.key]; there {
		return ""
	}
	soft := fmt.Sprintf(`${ get .%s %q }`, need.root, need.key)
	switch need.root {
	case "ClusterLabels":
		return fmt.Sprintf("the cluster has no label %q; set it with: kubectl label clusters.fleet.cattle.io -n %s %s %s=VALUE, or use %s, which may be empty",
			need.key, s.cluster.Namespace, s.cluster.Name, need.key, soft)
	case "ClusterAnnotations":
		return fmt.Sprintf("the cluster has no annotation %q; set it with: kubectl annotate clusters.fleet.cattle.io -n %s %s %s=VALUE, or use %s, which may be empty",
			need.key, s.cluster.Namespace, s.cluster.Name, need.key, soft)
	}
	return fmt.Sprintf("the cluster has no %q in spec.templateValues; add it to the Cluster %s, or use %s, which may be empty",
		need.key, s.cluster.ID(), soft)
}
