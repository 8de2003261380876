// Command cli writes the reference of the command line from its commands. It is
// run by make generate.
package main

//go:generate go run . -out ../../../docs/reference/cli.md

import (
	"flag"
	"fmt"
	"os"

	"github.com/flotilla-sh/flotilla/internal/cli"
)

func main() {
	out := flag.String("out", "docs/reference/cli.md", "file to write")
	flag.Parse()
	if err := os.WriteFile(*out, []byte(generated()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

// generated is the page with the defaults of an installed program.
func generated() string {
	return page(cli.Commands(cli.Env{Programs: "bin", LabDir: "~/.flotilla/lab"}))
}
