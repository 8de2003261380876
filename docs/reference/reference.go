// Package reference holds the generated references that programs show.
package reference

import _ "embed"

//go:embed fleet-schema.json
var fleetSchema string

// FleetSchema returns the JSON schema of fleet.yaml.
func FleetSchema() string { return fleetSchema }
