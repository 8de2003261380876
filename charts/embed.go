// Package charts holds the Helm charts that install Flotilla, so that the lab
// and the tests use what is shipped.
package charts

import "embed"

// FS has one directory per chart: flotilla-crd and flotilla for the hub,
// flotilla-agent for each cluster that is managed.
//
//go:embed all:flotilla-crd all:flotilla all:flotilla-agent
var FS embed.FS
