// Command docgen writes the reference of the API from the custom resource
// definitions of the chart flotilla-crd. It is run by make generate.
package main

//go:generate go tool -modfile=../../tools/go.mod controller-gen object crd paths=../../pkg/apis/... output:crd:dir=../../charts/flotilla-crd/templates
//go:generate go run . -crds ../../charts/flotilla-crd/templates -out ../../docs/reference/api.md

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	crds := flag.String("crds", "charts/flotilla-crd/templates", "directory with the definitions")
	out := flag.String("out", "docs/reference/api.md", "file to write")
	flag.Parse()
	if err := run(*crds, *out); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func run(dir, out string) error {
	kinds, err := load(dir)
	if err != nil {
		return err
	}
	page, err := render(kinds)
	if err != nil {
		return err
	}
	return os.WriteFile(out, []byte(page), 0o644)
}
