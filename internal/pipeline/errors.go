package pipeline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/target"
)

// mostErrors and mostClusters are how many different errors a person is told,
// and of how many clusters with the same one the names.
const mostErrors, mostClusters = 5, 5

// Errors joins the errors of outcomes for a person to read, those that are the
// same on several clusters once; no more than a few are told. All of them count
// for its kind.
func Errors(outcomes []Outcome) (held int, err error) {
	var causes []*cause
	known := map[string]*cause{}
	var errs []error
	untold := 0
	for i := range outcomes {
		o := &outcomes[i]
		if o.Err == nil {
			continue
		}
		held++
		errs = append(errs, o.Err)
		why, where := o.Err.Error(), ""
		wrong, of := errors.AsType[*target.ClusterError](o.Err)
		if of {
			why, where = wrong.Err.Error(), wrong.Cluster
		}
		c := known[why]
		switch {
		case c != nil && of:
		case len(causes) < mostErrors:
			c = &cause{why: why}
			known[why], causes = c, append(causes, c)
		default:
			untold++
			continue
		}
		if of {
			c.clusters = append(c.clusters, where)
		}
	}
	if held == 0 {
		return 0, nil
	}
	var lines []string
	for _, c := range causes {
		lines = append(lines, c.text())
	}
	if untold > 0 {
		lines = append(lines, fmt.Sprintf("and %d more clusters", untold))
	}
	return held, fault.Like(errors.Join(errs...), errors.New(strings.Join(lines, "; ")))
}

// cause is why clusters are held back.
type cause struct {
	why string
	// clusters are those that it is of; none where it tells of itself.
	clusters []string
}

func (c *cause) text() string {
	switch n := len(c.clusters); {
	case n == 0:
		return c.why
	case n == 1:
		return "cluster " + c.clusters[0] + ": " + c.why
	case n > mostClusters:
		return fmt.Sprintf("clusters %s and %d more: %s", strings.Join(c.clusters[:mostClusters], ", "), n-mostClusters, c.why)
	default:
		return "clusters " + strings.Join(c.clusters, ", ") + ": " + c.why
	}
}
