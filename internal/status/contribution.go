package status

import (
	"unicode/utf8"
	"unique"

	"k8s.io/apimachinery/pkg/api/equality"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// What a roll-up repeats of one deployment; the rest is on the deployment.
const (
	maxListed  = 4
	maxMessage = 512
	maxPatch   = 512
)

// Contribution is what one deployment adds to the roll-ups above it.
type Contribution struct {
	// State of the deployment.
	State fleet.BundleState
	// Resources counts its objects.
	Resources fleet.ResourceCounts
	// Detail says what is wrong; nil where there is nothing to say.
	Detail *Detail
}

// Detail says what is wrong with a deployment. It is not changed once made.
type Detail struct {
	// Message is the agent's.
	Message string
	// Modified are some of the objects that are not as applied.
	Modified []fleet.ModifiedStatus
	// NonReady are some of the objects that are not healthy.
	NonReady []fleet.NonReadyStatus
}

// ContributionOf reads a deployment.
func ContributionOf(bd *fleet.BundleDeployment) Contribution {
	c := Contribution{State: StateOf(bd), Resources: bd.Status.ResourceCounts}
	if c.State == fleet.Ready {
		return c
	}
	d := Detail{
		Message:  cut(MessageOf(bd)),
		Modified: lean(bd.Status.ModifiedStatus),
		NonReady: bd.Status.NonReadyStatus[:min(maxListed, len(bd.Status.NonReadyStatus))],
	}
	if d.Message != "" || len(d.Modified) > 0 || len(d.NonReady) > 0 {
		c.Detail = &d
	}
	return c
}

// lean lists the first few objects, without patches that are long or could
// hold a secret.
func lean(all []fleet.ModifiedStatus) []fleet.ModifiedStatus {
	if len(all) == 0 {
		return nil
	}
	few := make([]fleet.ModifiedStatus, min(maxListed, len(all)))
	copy(few, all)
	for i := range few {
		few[i].Fields = few[i].Fields[:min(maxListed, len(few[i].Fields))]
		if len(few[i].Patch) > maxPatch || isSecret(few[i].APIVersion, few[i].Kind) {
			few[i].Patch = ""
		}
		if isSecret(few[i].APIVersion, few[i].Kind) {
			few[i].Fields = nil
		}
	}
	return few
}

func isSecret(apiVersion, kind string) bool { return apiVersion == "v1" && kind == "Secret" }

// cut shortens a text to maxMessage, at a rune's boundary.
func cut(s string) string {
	limit := maxMessage
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// entry is a contribution as it is kept: equal counts of objects, which most
// deployments of a bundle have, are stored once.
type entry struct {
	state     code
	resources unique.Handle[fleet.ResourceCounts]
	detail    *Detail
}

func entryOf(c Contribution) entry {
	return entry{codeOf(c.State), unique.Make(c.Resources), c.Detail}
}

// equal compares by value; details are small.
func (e entry) equal(o entry) bool {
	return e.state == o.state && e.resources == o.resources && e.detail.equal(o.detail)
}

func (d *Detail) equal(o *Detail) bool {
	if d == o {
		return true
	}
	return d != nil && o != nil && d.Message == o.Message &&
		equality.Semantic.DeepEqual(d.Modified, o.Modified) && equality.Semantic.DeepEqual(d.NonReady, o.NonReady)
}
