// Command docgen writes the reference of the API and the JSON schema of
// fleet.yaml from the custom resource definitions of the chart flotilla-crd. It
// is run by make generate.
package main

//go:generate go tool -modfile=../../tools/go.mod controller-gen object crd paths=../../pkg/apis/... output:crd:dir=../../charts/flotilla-crd/templates
//go:generate go run . -crds ../../charts/flotilla-crd/templates -types ../../pkg/fleetyaml/types.go -out ../../docs/reference

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	crds := flag.String("crds", "charts/flotilla-crd/templates", "directory with the definitions")
	types := flag.String("types", "pkg/fleetyaml/types.go", "file with the Go types of fleet.yaml")
	out := flag.String("out", "docs/reference", "directory to write to")
	flag.Parse()
	if err := run(*crds, *types, *out); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func run(crds, types, out string) error {
	kinds, err := load(crds)
	if err != nil {
		return err
	}
	page, err := render(kinds)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "api.md"), []byte(page), 0o644); err != nil {
		return err
	}
	schema, err := fleetSchema(kinds, types)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "fleet-schema.json"), schema, 0o644)
}
